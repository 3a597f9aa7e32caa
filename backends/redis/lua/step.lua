-- step.lua: the common operations of a batch, in one round trip.
--
--   session, time, complex flags, 1: awake, number of finishes, of adds, of keys
--   wanted, priorities of adds i4 ('': all are 0), of each finish: outcome (D DONE,
--   d DROP) and I4 keys that are not wanted unless it succeeds; then the keys of
--   finishes, those of adds, and fence I7, session of each finish
--   → 'OK', time, keys that deadlines made READY or DIRTY, that they merged, pulse
--     (6), first fence, 1 if the next READY key needs the long way, results of
--     finishes, of adds ('': all are o, all are n), then keys handed out: each a
--     member of `ready`, and a record if it is not a plain one; or 'LOST'; or
--     'MORE', time, ...: more deadlines have passed; or 'LONG', time, ...: nothing
--     but deadlines has happened.
--
-- "The long way" (read.lua, commit.lua) is for what only the core in the client
-- decides: records with the flags of `complex`, sessions that have ended.
--
-- Here is what plain.lua does not do.
local complex, awake = tonumber(ARGV[3]), ARGV[4] == '1'
local prios, outcomes = ARGV[8], ARGV[9]
ends = ends or call('ZRANGE', S, 0, 1, 'WITHSCORES')
local till = ends[1] == sid and ends[2] or ends[3] == sid and ends[4]
if till and tonumber(till) <= us or not till and not lives(sid) then return {'LOST', now8} end
if tonumber(ends[2]) <= us then return {'LONG', now8, 0, 0} end

-- A run is requested: the new state, flags, priority, seq, since, and what
-- happened: n new, d DIRTY, r raised, m merged.
local function request(st, fl, prio, seq, since, asked, stamp)
  if st == 1 or band(fl, DIRTY) ~= 0 then
    if asked <= prio then return st, fl, prio, seq, since, 'm' end
    if st == 1 then seq = number() end
    return st, fl, asked, seq, since, 'r'
  end
  if st == 2 then return st, fl + DIRTY, asked, seq, stamp, 'd' end
  return 1, fl, asked, number(), stamp, 'n'
end

-- Deadlines that have passed act first, in order.
local promoted, merged = 0, 0
local was = first_due()
if was and was <= us then
  local due = call('ZRANGEBYSCORE', D, '-inf', us, 'WITHSCORES', 'LIMIT', 0, 500)
  for i = 1, #due, 2 do
    if tonumber(due[i + 1]) == us and unpk('>H', due[i]) > rest then break end
    local key = sub(due[i], 10)
    local rec = call('HGET', K, key)
    local st, fl, prio, seq, since = unpk('>BHi4I7c8', rec)
    if band(fl, DEBOUNCED + COOLDOWN + THROTTLED) ~= 0 then
      flush()
      return {'LONG', now8, promoted, merged}
    end
    local at = st == 2 and 50 or 23
    local asked, what = unpk('>i4', rec, at + 15), nil
    fl = fl - band(fl, WAITING + BACKOFF + COVERS)
    st, fl, prio, seq, since, what = request(st, fl, prio, seq, since, asked, sub(rec, at, at + 7))
    if what == 'n' or what == 'd' then promoted = promoted + 1 else merged = merged + 1 end
    change(key, rec, pack('>BHi4I7', st, fl, prio, seq) .. since ..
           sub(rec, 23, at - 1) .. sub(rec, at + 19))
  end
  flush()
  was = first_due()
  if #due == 1000 and was and was <= us then
    wake(promoted, sid)
    return {'MORE', now8, promoted, merged}
  end
end

-- The records that are named, as they are and as they will be.
local names, before, after = {}, {}, {}
for i = 1, nf + na do names[i] = ARGV[9 + i] end
for i = 1, #names, 1000 do
  local some = call('HMGET', K, unpack(names, i, math.min(i + 999, #names)))
  for j, rec in ipairs(some) do
    rec = rec or ''
    if rec ~= '' and band(byte(rec, 3), complex) ~= 0 then
      return {'LONG', now8, promoted, merged}
    end
    before[names[i + j - 1]], after[names[i + j - 1]] = rec, rec
  end
end

local made, finished, added = promoted, {}, {}
for i = 1, nf do
  local key = names[i]
  local rec = after[key]
  local ok = sub(rec, 1, 1) == '\2' and sub(rec, 27, 41) == ARGV[9 + nf + na + i]
  local outcome, depends = unpk('>c1I4', outcomes, 5 * i - 4)
  finished[i] = ok and 'o' or 'l'
  if not ok then
    wanted = wanted - depends
  else
    local st, fl, prio = unpk('>BHi4', rec)
    local since, tail = sub(rec, 15, 22), sub(rec, 50)
    if outcome == 'D' then
      tail = band(fl, WAITING) ~= 0 and sub(tail, 1, 19) or ''
      fl = fl - band(fl, FAILS + BUCKET)
    end
    if band(fl, DIRTY) ~= 0 then
      after[key] = pack('>BHi4I7', 1, fl - DIRTY, prio, number()) .. since .. tail
      made = made + 1
    elseif tail ~= '' then
      after[key] = pack('>BHi4I7', 3, fl, 0, 0) .. ZERO8 .. tail
    else
      after[key] = ''
    end
  end
end
for i = 1, na do
  local key, what = names[nf + i], 'n'
  local rec, asked = after[key], prios == '' and 0 or unpk('>i4', prios, 4 * i - 3)
  if rec == '' then
    after[key] = pack('>BHi4I7', 1, 0, asked, number()) .. now8
  else
    local st, fl, prio, seq, since = unpk('>BHi4I7c8', rec)
    if st == 4 then
      what = 'x'
    else
      st, fl, prio, seq, since, what = request(st, fl, prio, seq, since, asked, now8)
      if what ~= 'm' then after[key] = pack('>BHi4I7', st, fl, prio, seq) .. since .. sub(rec, 23) end
    end
  end
  if what == 'n' then made = made + 1 end
  added[i] = what
end
for key, rec in pairs(after) do
  if rec ~= before[key] then change(key, before[key], rec) end
end
flush()
if na > 0 then insist() end -- a replica must refuse an add that only merges, too

-- Hand out: all gets together; the client divides the keys among them.
local out = {'OK', now8, promoted, merged, 0, 0, 0, 0, 0, 0, 0, 0,
             table.concat(finished), table.concat(added)}
local first, long, ready = 0, 0, card(R)
if wanted > ready then wanted = ready end
local members = wanted > 0 and call('ZRANGE', R, 0, wanted - 1) or {}
for _, member in ipairs(members) do
  local plain = byte(member, 8) == 0
  local key = sub(member, plain and 17 or 9)
  local rec = call('HGET', K, key)
  local st, fl, prio = unpk('>BHi4', rec)
  if band(fl, DEBOUNCED + COOLDOWN + THROTTLED) ~= 0 then long = 1 break end
  local fence = number()
  if first == 0 then first = fence end
  change(key, rec, pack('>BHi4I7', 2, fl, 0, 0) .. ZERO8 ..
         pack('>i4I7', prio, fence) .. sid .. now8 .. sub(rec, 23))
  ready = ready - 1
  out[#out + 1] = member
  if not plain then out[#out + 1] = rec end
end
flush()
out[5], out[6], out[7], out[8], out[9], out[10] = pulse(sid, made, was, awake, ends, ready)
out[11], out[12] = first, long
return out
