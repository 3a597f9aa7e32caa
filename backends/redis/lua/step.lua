-- step.lua: the common operations of a batch, in one round trip.
--
--   session, time, complex flags, 1: awake, number of finishes, adds, gets,
--   then key, fence, outcome (D DONE, d DROP) of each finish;
--   key, priority of each add; max, number of its finish (0: none) of each get
--   → 'OK', time, keys that deadlines made READY or DIRTY, that they merged, pulse,
--     results of finishes, of adds, keys handed out, first fence, 1 if the next
--     READY key needs the long way; or 'LOST'; or 'MORE', time, ...: more deadlines
--     have passed; or 'LONG', time, ...: nothing but deadlines has happened.
--
-- "The long way" (read.lua, commit.lua) is for what only the core in the client
-- decides: records with the flags of `complex`, sessions that have ended.
local sid = ARGV[1]
read_time(ARGV[2])
local complex, awake = tonumber(ARGV[3]), ARGV[4] == '1'
local nf, na, ng = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local ends = call('ZRANGE', S, 0, 1, 'WITHSCORES')
local till = ends[1] == sid and ends[2] or ends[3] == sid and ends[4]
if till and tonumber(till) <= us or not till and not lives(sid) then return {'LOST', now8} end
if tonumber(ends[2]) <= us then return {'LONG', now8, 0, 0} end

-- A run is requested: the new state, flags, priority, seq, since, and what
-- happened: n new, d DIRTY, r raised, m merged.
local function request(st, fl, prio, seq, since, wanted, stamp)
  if st == 1 or band(fl, DIRTY) ~= 0 then
    if wanted <= prio then return st, fl, prio, seq, since, 'm' end
    if st == 1 then seq = number() end
    return st, fl, wanted, seq, since, 'r'
  end
  if st == 2 then return st, fl + DIRTY, wanted, seq, stamp, 'd' end
  return 1, fl, wanted, number(), stamp, 'n'
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
    local wanted, what = unpk('>i4', rec, at + 15), nil
    fl = fl - band(fl, WAITING + BACKOFF + COVERS)
    st, fl, prio, seq, since, what = request(st, fl, prio, seq, since, wanted, sub(rec, at, at + 7))
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
local a0, g0 = 7 + 3 * nf, 7 + 3 * nf + 2 * na
for i = 8, a0, 3 do names[#names + 1] = ARGV[i] end
for i = a0 + 1, g0, 2 do names[#names + 1] = ARGV[i] end
for i = 1, #names, 1000 do
  local some = call('HMGET', K, unpack(names, i, math.min(i + 999, #names)))
  for j, rec in ipairs(some) do
    rec = rec or ''
    if rec ~= '' then
      local st, fl = unpk('>BH', rec)
      if band(fl, complex) ~= 0 then return {'LONG', now8, promoted, merged} end
    end
    before[names[i + j - 1]], after[names[i + j - 1]] = rec, rec
  end
end

local made, finished, added = promoted, {}, {}
for i = 8, a0, 3 do
  local key, rec = ARGV[i], after[ARGV[i]]
  local ok = sub(rec, 1, 1) == '\2' and sub(rec, 27, 33) == ARGV[i + 1] and sub(rec, 34, 41) == sid
  finished[#finished + 1] = ok and 'o' or 'l'
  if ok then
    local st, fl, prio, seq = unpk('>BHi4I7', rec)
    local since, tail = sub(rec, 15, 22), sub(rec, 50)
    if ARGV[i + 2] == 'D' then
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
for i = a0 + 1, g0, 2 do
  local key, rec, what = ARGV[i], after[ARGV[i]], 'n'
  if rec == '' then
    after[key] = pack('>BHi4I7', 1, 0, ARGV[i + 1], number()) .. now8
  else
    local st, fl, prio, seq, since = unpk('>BHi4I7c8', rec)
    if st == 4 then
      what = 'x'
    else
      st, fl, prio, seq, since, what = request(st, fl, prio, seq, since, tonumber(ARGV[i + 1]), now8)
      if what ~= 'm' then after[key] = pack('>BHi4I7', st, fl, prio, seq) .. since .. sub(rec, 23) end
    end
  end
  if what == 'n' then made = made + 1 end
  added[#added + 1] = what
end
for key, rec in pairs(after) do
  if rec ~= before[key] then change(key, before[key], rec) end
end
flush()

-- Hand out: all gets together; the client divides the keys among them.
local wanted, handed, first, long = 0, {}, 0, 0
for i = g0 + 1, g0 + 2 * ng, 2 do
  local finish = tonumber(ARGV[i + 1])
  if finish == 0 or finished[finish] == 'o' then wanted = wanted + tonumber(ARGV[i]) end
end
local members = wanted > 0 and call('ZRANGE', R, 0, wanted - 1) or {}
for i = 1, #members, 1000 do
  local keys = {}
  for j = i, math.min(i + 999, #members) do keys[#keys + 1] = sub(members[j], 8) end
  local recs = call('HMGET', K, unpack(keys))
  for j, rec in ipairs(recs) do
    local st, fl, prio = unpk('>BHi4', rec)
    if band(fl, DEBOUNCED + COOLDOWN + THROTTLED) ~= 0 then long = 1 break end
    local fence = number()
    if first == 0 then first = fence end
    change(keys[j], rec, pack('>BHi4I7', 2, fl, 0, 0) .. ZERO8 ..
           pack('>i4I7', prio, fence) .. sid .. now8 .. sub(rec, 23))
    handed[#handed + 1] = keys[j]
    handed[#handed + 1] = rec
  end
  if long == 1 then break end
end
if #handed > 0 then flush() end
return {'OK', now8, promoted, merged, pulse(sid, made, was, awake, ends),
        table.concat(finished), table.concat(added), handed, first, long}
