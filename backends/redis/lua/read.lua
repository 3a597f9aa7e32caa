-- read.lua: what the core in the client needs to decide about a batch.
--
--   session, time, numbers to reserve, READY keys wanted, 1: buckets wanted, 2:
--   the names of the holders of keys, 3: both, whose holds ('' nobody's, 1 those
--   of a session that has ended, else a session and the key after which to begin),
--   the latest time at which they may end, in microseconds (0: any), then keys
--   → 'OK', time, last number, last reserved one, counts, bucket of all keys, due
--     keys and records, READY ones, whose holds, these, those of the keys, those of
--     own buckets that were used longest ago, pulse, holders; or 'LOST'; or
--     'LATE', time
local sid = ARGV[1]
if ARGV[7] ~= '0' and us > tonumber(ARGV[7]) then return {'LATE', now8} end
if sid ~= '' and not lives(sid) then return {'LOST', now8} end
insist()

local function with_records(keys)
  local out = {}
  for i = 1, #keys, 1000 do
    local recs = call('HMGET', K, unpack(keys, i, math.min(i + 999, #keys)))
    for j, rec in ipairs(recs) do
      out[#out + 1] = keys[i + j - 1]
      out[#out + 1] = rec or ''
    end
  end
  return out
end
-- Members of `due` and `ready`.
local function keys_of(members, is_ready)
  for i, member in ipairs(members) do
    members[i] = sub(member, not is_ready and 10 or byte(member, 8) == 0 and 17 or 9)
  end
  return members
end

local due, due_rest = first_due()
local meta = call('HMGET', M, 'dirty', 'idle', 'cool', 'bucket')
local counts = {card(R), card(H), tonumber(meta[1] or 0),
                call('ZCARD', D) - (meta[3] or 0), call('ZCARD', X),
                known_keys() - (meta[2] or 0), due or '', due_rest or 0}
local passed = {}
if due and due <= us then
  passed = with_records(keys_of(call('ZRANGEBYSCORE', D, '-inf', us, 'LIMIT', 0, 200)))
end
local ready, wanted = {}, math.min(ARGV[4], counts[1])
if wanted > 0 then
  ready = with_records(keys_of(call('ZRANGE', R, 0, wanted - 1), true))
end
local used = {}
local wants = tonumber(ARGV[5])
if band(wants, 1) ~= 0 then used = with_records(call('ZRANGE', U, 0, 1)) end

-- A session that has ended is ended for good before its first key is given back.
local ended, from, holds = '', '', {}
if ARGV[6] == '1' then
  local oldest = call('ZRANGE', S, 0, 0, 'WITHSCORES')
  if oldest[1] and tonumber(oldest[2]) <= us then
    ended, from = oldest[1], '[' .. oldest[1]
    stir()
    call('ZADD', S, -9007199254740992, ended)
  end
elseif ARGV[6] ~= '' then
  ended, from = sub(ARGV[6], 1, 8), (#ARGV[6] > 8 and '(' or '[') .. ARGV[6]
end
if ended ~= '' then
  local keys = {}
  for i, member in ipairs(call('ZRANGEBYLEX', H, from, '+', 'LIMIT', 0, 256)) do
    if sub(member, 1, 8) ~= ended then break end
    keys[i] = sub(member, 9)
  end
  holds = with_records(keys)
end
local named = {}
for i = 8, #ARGV do named[#named + 1] = ARGV[i] end
-- Numbers for what the core may give out: more for each key that it may move.
number()
local base = last - 1
last = base + tonumber(ARGV[3]) + 2 * (#passed + #holds)
call('HSET', M, 'n', last)
named = with_records(named)
local holders = band(wants, 2) ~= 0 and holders_of(named) or {}
return {'OK', now8, base, last, counts, meta[4] or '', passed, ready, ended, holds,
        named, used, {pulse(sid, 0, due, false)}, holders}
