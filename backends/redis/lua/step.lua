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
local sid = ARGV[1]
read_time(ARGV[2])
local complex = tonumber(ARGV[3])
local nf, na = tonumber(ARGV[5]), tonumber(ARGV[6])
local wanted, prios, outcomes = tonumber(ARGV[7]), ARGV[8], ARGV[9]
local ends = call('ZRANGE', S, '0', '1', 'WITHSCORES')
local till = ends[1] == sid and ends[2] or ends[3] == sid and ends[4] or call('ZSCORE', S, sid)
if not till or tonumber(till) <= us then return {'LOST', now8} end
if tonumber(ends[2]) <= us then return {'LONG', now8, 0, 0} end
read_meta()

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
  learn()
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
    if promoted > 0 then wake(promoted, sid) end
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
local recs, now_is = nf + na > 0 and read(ARGV, 10, nf + na), {}
for i = 1, nf + na do
  local rec = recs[i]
  if rec and band(byte(rec, 3), complex) ~= 0 then return {'LONG', now8, promoted, merged} end
end

-- Common changes are in lists of their own, and written before all others.
local gone, ready_now, held_now, nw = {}, {}, {}, 0
local function write_out()
  if gone[1] then many('ZREM', H, gone) gone = {} end
  if ready_now[1] then many('ZADD', R, ready_now) ready_now = {} end
  flush()
  nw = 0
end

-- Any change, also of a key that has changed before in this batch.
local function change_again(key, rec, new)
  if not change then learn() end
  if now_is[key] then write_out() end
  change(key, rec, new)
  now_is[key], nw = new, #hset
end

local made, finished, added = promoted, nil, nil
-- Only the results from the first on that is not as expected.
local function note(list, i, usual, what)
  list = list or {usual:rep(i - 1)}
  list[#list + 1] = what
  return list
end

local keys_at, fences_at = 9, 9 + nf + na
for i = 1, nf do
  local key = ARGV[keys_at + i]
  local rec = now_is[key] or recs[i]
  if not rec or sub(rec, 27, 41) ~= ARGV[fences_at + i] or byte(rec) ~= 2 then
    finished = note(finished, i, 'o', 'l')
    wanted = wanted - unpk('>I4', outcomes, 5 * i - 3)
  else
    if finished then finished = note(finished, i, 'o', 'o') end
    if #rec == 49 and sub(rec, 2, 3) == '\0\0' then
      gone[#gone + 1] = sid .. key
      hdel[#hdel + 1] = key
      now_is[key] = ''
    else
      if not number then learn() end
      local st, fl, prio = unpk('>BHi4', rec)
      local since, tail, new = sub(rec, 15, 22), sub(rec, 50), ''
      if byte(outcomes, 5 * i - 4) == 68 then
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

keys_at = 9 + nf
for i = 1, na do
  local key = ARGV[keys_at + i]
  local rec = now_is[key] or recs[nf + i] or ''
  local prio = prios == '' and 0 or unpk('>i4', prios, 4 * i - 3)
  if rec == '' then
    last = last + 1
    local seq, n = pack('>I7', last), #ready_now
    if prio == 0 then
      rec = PLAIN .. seq .. now8
      ready_now[n + 1], ready_now[n + 2] = '0', seq .. '\0' .. now8 .. key
    else
      rec = pack('>BHi4', 1, 0, prio) .. seq .. now8
      ready_now[n + 1], ready_now[n + 2] = -prio, seq .. '\1' .. key
    end
    hset[nw + 1], hset[nw + 2] = key, rec
    nw = nw + 2
    now_is[key] = rec
    made = made + 1
    if added then added = note(added, i, 'n', 'n') end
  else
    if not number then learn() end
    local st, fl, is, seq, since = unpk('>BHi4I7c8', rec)
    local what = 'x'
    if st ~= 4 then
      st, fl, is, seq, since, what = request(st, fl, is, seq, since, prio, now8)
      if what ~= 'm' and what ~= 'x' then
        change_again(key, rec, pack('>BHi4I7', st, fl, is, seq) .. since .. sub(rec, 23))
      end
    end
    if what == 'n' then made = made + 1 end
    added = note(added, i, 'n', what)
  end
end
if nf + na > 0 then write_out() end

-- Hand out: all gets together; the client divides the keys among them. Only the
-- places of a record in `ready` and `held` change.
local first, long, ready = 0, 0, card(R)
local out = {'OK', now8, promoted, merged, 0, 0, 0, 0, 0, 0, 0, 0, finished and table.concat(finished) or '',
             added and table.concat(added) or ''}
if wanted > ready then wanted = ready end
if wanted > 0 then
  local members = call('ZRANGE', R, '0', wanted - 1)
  local mine, n, at = sid .. now8, 0, 14
  local head = '\2\0\0' .. ZERO8 .. ZERO8 .. ZERO4 .. '\0\0\0' -- of a plain record
  first = last + 1
  for i = 1, wanted do
    local member, fence, key, rec = members[i], pack('>I7', first + n), nil, nil
    at = at + 1
    out[at] = member
    if byte(member, 8) == 0 then
      key = sub(member, 17)
      rec = head .. fence .. mine
    else
      key = sub(member, 9)
      local is = call('HGET', K, key)
      if band(byte(is, 3), DEBOUNCED + COOLDOWN + THROTTLED) ~= 0 then
        out[at], long = nil, 1
        break
      end
      rec = '\2' .. sub(is, 2, 3) .. sub(head, 4, 22) .. sub(is, 4, 7) .. fence .. mine .. sub(is, 23)
      at = at + 1
      out[at] = is
    end
    n = n + 1
    hset[2 * n - 1], hset[2 * n] = key, rec
    held_now[2 * n - 1], held_now[2 * n] = '0', sid .. key
  end
  if n > 0 then
    last, ready = last + n, ready - n
    call('ZREMRANGEBYRANK', R, '0', n - 1)
    many('ZADD', H, held_now)
    flush()
  end
end
out[5], out[6], out[7], out[8], out[9], out[10] = pulse(sid, made, was, ARGV[4] == '1', ends, ready)
out[11], out[12] = first, long
return out
