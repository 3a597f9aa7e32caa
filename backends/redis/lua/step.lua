-- step.lua: the common operations of a batch, in one round trip.
--
--   session, time, complex flags, 1: awake, number of finishes, of adds, keys
--   wanted by gets without a finish, priorities of adds ('': all are 0), then the
--   keys of finishes, of adds, and of each finish: fence, outcome (D DONE, d DROP),
--   keys wanted by gets that depend on it
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
local nf, na = tonumber(ARGV[5]), tonumber(ARGV[6])
local wanted, prios = tonumber(ARGV[7]), ARGV[8]
local ZERO19 = ZERO4 .. ZERO8 .. '\0\0\0\0\0\0\0'
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

-- The records of `n` keys, from list[from] on.
local function read(list, from, n)
  if n <= 1000 then return call('HMGET', K, unpack(list, from, from + n - 1)) end
  local out = {}
  for i = from, from + n - 1, 1000 do
    for _, rec in ipairs(call('HMGET', K, unpack(list, i, math.min(i + 999, from + n - 1)))) do
      out[#out + 1] = rec
    end
  end
  return out
end

-- The records that are named, as they are; `now_is`: of keys that have changed.
local recs, now_is = nf + na > 0 and read(ARGV, 9, nf + na), {}
for i = 1, nf + na do
  local rec = recs[i]
  if rec and band(byte(rec, 3), complex) ~= 0 then return {'LONG', now8, promoted, merged} end
end

-- Any change, also of a key that has changed before in this batch.
local function change_again(key, rec, new)
  if now_is[key] then flush() end
  change(key, rec, new)
  now_is[key] = new
end

local made, finished, added = promoted, {}, {}
for i = 1, nf do
  local key, end_of = ARGV[8 + i], ARGV[8 + nf + na + i]
  local rec = now_is[key] or recs[i] or ''
  if sub(rec, 27, 33) ~= sub(end_of, 1, 7) or sub(rec, 34, 41) ~= sid or byte(rec) ~= 2 then
    finished[i] = 'l'
  else
    finished[i] = 'o'
    if #end_of > 8 then wanted = wanted + sub(end_of, 9) end
    if #rec == 49 and sub(rec, 2, 3) == '\0\0' then
      leave(H, sid .. key)
      hdel[#hdel + 1] = key
      now_is[key] = ''
    else
      local st, fl, prio, seq = unpk('>BHi4I7', rec)
      local since, tail, new = sub(rec, 15, 22), sub(rec, 50), ''
      if sub(end_of, 8, 8) == 'D' then
        tail = band(fl, WAITING) ~= 0 and sub(tail, 1, 19) or ''
        fl = fl - band(fl, FAILS + BUCKET)
      end
      if band(fl, DIRTY) ~= 0 then
        new = pack('>BHi4I7', 1, fl - DIRTY, prio, number()) .. since .. tail
        made = made + 1
      elseif tail ~= '' then
        new = pack('>BHi4I7', 3, fl, 0, 0) .. ZERO8 .. tail
      end
      change_again(key, rec, new)
    end
  end
end
for i = 1, na do
  local key, prio = ARGV[8 + nf + i], ZERO4
  local rec, what = now_is[key] or recs[nf + i] or '', 'n'
  if prios ~= '' then prio = sub(prios, 4 * i - 3, 4 * i) end
  if rec == '' then
    local seq = pack('>I7', number())
    rec = '\1\0\0' .. prio .. seq .. now8
    enter(R, prio == ZERO4 and 0 or -unpk('>i4', prio), seq .. key)
    write(key, rec)
    now_is[key] = rec
  else
    local st, fl, is, seq, since = unpk('>BHi4I7c8', rec)
    if st == 4 then
      what = 'x'
    else
      st, fl, is, seq, since, what = request(st, fl, is, seq, since, unpk('>i4', prio), now8)
      if what ~= 'm' then
        change_again(key, rec, pack('>BHi4I7', st, fl, is, seq) .. since .. sub(rec, 23))
      end
    end
  end
  if what == 'n' then made = made + 1 end
  added[i] = what
end
flush()

-- Hand out: all gets together; the client divides the keys among them. Only the
-- places of a record in `ready` and `held` change.
local handed, first, long, ready = {}, 0, 0, card(R)
if wanted > ready then wanted = ready end
if wanted > 0 then
  local keys, n = call('ZRANGE', R, 0, wanted - 1), 0
  for i = 1, wanted do keys[i] = sub(keys[i], 8) end
  local mine = sid .. now8
  for i, rec in ipairs(read(keys, 1, wanted)) do
    if band(byte(rec, 3), DEBOUNCED + COOLDOWN + THROTTLED) ~= 0 then long = 1 break end
    local key, fence = keys[i], number()
    if first == 0 then first = fence end
    write(key, '\2' .. sub(rec, 2, 3) .. ZERO19 .. sub(rec, 4, 7) .. pack('>I7', fence) ..
          mine .. sub(rec, 23))
    enter(H, 0, sid .. key)
    handed[n + 1], handed[n + 2] = key, rec
    n = n + 2
  end
  ready = ready - n / 2
  if n > 0 then
    call('ZREMRANGEBYRANK', R, 0, n / 2 - 1)
    flush()
  end
end
return {'OK', now8, promoted, merged, pulse(sid, made, was, awake, ends, ready),
        table.concat(finished), table.concat(added), handed, first, long}
