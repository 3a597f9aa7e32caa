-- SPDX-License-Identifier: MIT
-- common.lua: how do records change, and what follows from it? Behind head.lua in
-- every script.

-- How many members, without the guard.
local function card(set)
  local n = call('ZCARD', set)
  return n > 0 and n - 1 or 0
end

-- Many arguments in commands of a thousand, an even number.
local function many(command, key, list)
  local n = #list
  if n <= 1000 then
    call(command, key, unpack(list))
    return
  end
  for i = 1, n, 1000 do
    call(command, key, unpack(list, i, math.min(i + 999, n)))
  end
end

-- Deadlines, sessions or sleepers change: see plain.lua.
local function stir()
  call('HDEL', M, 'calm')
end

-- What is to be written: members to remove, scores and members to add, by set;
-- keys and records; keys.
local zrem, zadd, hset, hdel = {}, {}, {}, {}
local dirty, idle, cool = 0, 0, 0
local due_known, due_us, due_rest
local function flush()
  local stirs = zrem[D] or zadd[D]
  if stirs then due_known = false end
  for set, list in pairs(zrem) do
    many('ZREM', set, list)
    zrem[set] = nil
  end
  for set, list in pairs(zadd) do
    many('ZADD', set, list)
    zadd[set] = nil
  end
  if hdel[1] then many('HDEL', K, hdel) hdel = {} end
  if hset[1] then many('HSET', K, hset) hset = {} end
  if dirty ~= 0 then
    call('HINCRBY', M, 'dirty', dirty)
    dirty_keys, dirty = dirty_keys + dirty, 0
  end
  if idle ~= 0 then call('HINCRBY', M, 'idle', idle) idle = 0 end
  if cool ~= 0 then call('HINCRBY', M, 'cool', cool) cool = 0 end
  if last ~= saved then
    call('HSET', M, 'n', last)
    saved = last
  end
  -- Not before the others: a server whose memory is full must refuse an add.
  if stirs then stir() end
end

-- The earliest deadline: microseconds, and the rest; nil: there is none.
local function first_due()
  if not due_known then
    local head = call('ZRANGE', D, 0, 0, 'WITHSCORES')
    due_known, due_us, due_rest = true, nil, nil
    if head[1] then due_us, due_rest = tonumber(head[2]), (unpk('>H', head[1])) end
  end
  return due_us, due_rest
end

-- Microseconds, and the rest in nanoseconds, of a time in a record.
local function split8(rec, at)
  local hi, lo = unpk('>i4I4', rec, at)
  local t = hi % 1000 * 4294967296 + lo
  return floor(hi / 1000) * 4294967296 + floor(t / 1000), t % 1000
end

-- A session that has ended is not there, or its time is over.
local function lives(sid)
  local till = call('ZSCORE', S, sid)
  return till and tonumber(till) > us
end

local function known_keys()
  local n = call('HLEN', K)
  return n > 0 and n - 1 or 0
end

local function number()
  last = last + 1
  return last
end

-- A server whose memory is full refuses a script at its first write, if that may
-- need memory; scripts that must run even then write this first. Gets and
-- finishes begin with a removal of their own.
local function insist()
  call('ZREM', I, '')
end

-- The list on which a session sleeps.
local function bed(sid)
  return I .. ':' .. string.format('%08x%08x', unpk('>I4I4', sid))
end

-- The names of the processes of the sessions, for people.
local function who()
  return sub(I, 1, -5) .. 'who'
end

-- Which sessions hold these keys, and what are their names? Keys and records in
-- turn; sessions and names in turn.
local function holders_of(list)
  local out, seen = {}, {}
  for i = 2, #list, 2 do
    local id = byte(list[i]) == 2 and sub(list[i], 34, 41)
    if id and not seen[id] then
      seen[id] = true
      out[#out + 1] = id
      out[#out + 1] = call('HGET', who(), id) or ''
    end
  end
  return out
end

-- The places of a record in the sorted sets: put(set, score, member) of each.
local function index(key, rec, n, put)
  local st, high, fl = byte(rec, 1, 3)
  local at = 23
  if st == 1 then
    local seq = sub(rec, 8, 14)
    if #rec == 22 and sub(rec, 1, 7) == PLAIN then
      put(R, 0, seq .. '\0' .. sub(rec, 15) .. key)
    else
      put(R, -unpk('>i4', rec, 4), seq .. '\1' .. key)
    end
  elseif st == 2 then
    at = 50
    put(H, 0, sub(rec, 34, 41) .. key)
    if band(fl, DIRTY) ~= 0 then dirty = dirty + n end
  elseif st == 4 then
    put(X, (unpk('>I7', rec, 8)), key)
  elseif band(fl, WAITING + COOLDOWN) == 0 then
    idle = idle + n
  end
  fl = fl + 256 * high
  if fl < WAITING then return end
  if band(fl, WAITING + COOLDOWN) ~= 0 then
    local u, r = split8(rec, at)
    put(D, u, pack('>H', r) .. sub(rec, at + 8, at + 14) .. key)
    if band(fl, COOLDOWN) ~= 0 then cool = cool + n end
    at = at + 19
  end
  if band(fl, BUCKET) ~= 0 then
    if band(fl, THROTTLED) ~= 0 then at = at + 32 end
    if band(fl, FAILS) ~= 0 then at = at + 16 end
    local u = split8(rec, at + 8)
    put(U, u, key)
  end
end

local function leave(set, _, member)
  local list = zrem[set]
  if list then list[#list + 1] = member else zrem[set] = {member} end
end
local function enter(set, score, member)
  local list = zadd[set] or {}
  zadd[set] = list
  list[#list + 1] = score
  list[#list + 1] = member
end

-- A record changes: key, before, after ('' for none).
local function change(key, before, after)
  if before ~= '' then index(key, before, -1, leave) end
  if after ~= '' then
    index(key, after, 1, enter)
    hset[#hset + 1] = key
    hset[#hset + 1] = after
  else
    hdel[#hdel + 1] = key
  end
end

-- Wake up to `n` other sessions, those that sleep longest. A list that nobody
-- reads any more goes away by itself.
local function wake(n, sid)
  if n <= 0 then return end
  for _, id in ipairs(call('ZRANGE', I, 0, n < 32 and n or 32)) do
    if id ~= sid and n > 0 then
      n = n - 1
      call('ZREM', I, id)
      call('RPUSH', bed(id), '1')
      call('PEXPIRE', bed(id), 60000)
    end
  end
end

-- What the shell must know after a batch, in six values. `made`: keys that became
-- READY; `was`: the earliest deadline before. `awake`: the session may be among
-- the sleeping ones, and is not asleep; if it was woken, but not for this batch,
-- another one must look. `ends`: of the first two sessions, `ready`: how many keys,
-- if they were read.
local function pulse(sid, made, was, awake, ends, ready)
  local held = card(H)
  ready = ready or card(R)
  local due, rest_of_due = first_due()
  local other
  ends = ends or call('ZRANGE', S, 0, 1, 'WITHSCORES')
  if ends[1] and ends[1] ~= sid then other = ends[2] else other = ends[4] end
  if awake and call('ZREM', I, sid) == 0 then made = made + 1 end
  if made > ready then made = ready end
  if made == 0 and due and (not was or due < was) then made = 1 end
  wake(made, sid)
  return ready, held, dirty_keys, due or '', rest_of_due or 0,
         other and tonumber(other) or ''
end
