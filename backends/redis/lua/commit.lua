-- commit.lua: write what the core in the client has decided, if nothing that it
-- has read is different now.
--
--   session, time, most keys (0: any), bucket before, after ('': as it was),
--   session to bury or '', 1: awake, then key, record before, after of each
--   → 'OK', time, pulse; 'LOST'; or 'AGAIN': read again
local sid = ARGV[1]
if sid ~= '' and not lives(sid) then return {'LOST', now8} end
local was = first_due()
local more, made = 0, 0
local function known(rec)
  if rec == '' then return 0 end
  local st, fl = unpk('>BH', rec)
  return st == 3 and band(fl, WAITING + COOLDOWN) == 0 and 0 or 1
end
for i = 8, #ARGV, 3 do
  if (call('HGET', K, ARGV[i]) or '') ~= ARGV[i + 1] then return {'AGAIN'} end
  local old, new = ARGV[i + 1], ARGV[i + 2]
  more = more + known(new) - known(old)
  if sub(new, 1, 1) == '\1' and sub(old, 1, 1) ~= '\1' then made = made + 1 end
end
if ARGV[5] ~= '' and (call('HGET', M, 'bucket') or '') ~= ARGV[4] then return {'AGAIN'} end
if ARGV[3] ~= '0' and more > 0 and
   known_keys() - (call('HGET', M, 'idle') or 0) + more > tonumber(ARGV[3]) then
  return {'AGAIN'}
end
for i = 8, #ARGV, 3 do change(ARGV[i], ARGV[i + 1], ARGV[i + 2]) end
flush()
if ARGV[5] ~= '' then call('HSET', M, 'bucket', ARGV[5]) end
if ARGV[6] ~= '' then
  local held = call('ZRANGEBYLEX', H, '[' .. ARGV[6], '+', 'LIMIT', 0, 1)
  if not held[1] or sub(held[1], 1, 8) ~= ARGV[6] then
    stir()
    call('ZREM', S, ARGV[6])
    call('ZREM', I, ARGV[6])
  end
end
return {'OK', now8, {pulse(sid, made, was, ARGV[7] == '1')}}
