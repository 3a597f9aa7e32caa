-- view.lua: what can be seen, without a change.
--
--   session (not used), time, 'stats' | 'depths' | 'scan' | 'check', argument
--   → 'OK', time, then as each part below says
local what, argument = ARGV[3], ARGV[4]

local function flags_of(rec) return (select(2, unpk('>BH', rec))) end

-- The first deadline that is not the end of a cooldown.
local function first_waiting(cools)
  if cools == 0 then return first_due() end
  for i = 0, call('ZCARD', D) - 1, 100 do
    local some = call('ZRANGE', D, i, i + 99, 'WITHSCORES')
    for j = 1, #some, 2 do
      local rec = call('HGET', K, sub(some[j], 10))
      if band(flags_of(rec), COOLDOWN) == 0 then
        return tonumber(some[j + 1]), (unpk('>H', some[j]))
      end
    end
  end
end

-- Each HELD key: f(key, record).
local function each_held(f)
  local n = card(H)
  for i = 0, n - 1, 1000 do
    for _, member in ipairs(call('ZRANGE', H, i, math.min(i + 999, n - 1))) do
      f(sub(member, 9), call('HGET', K, sub(member, 9)), sub(member, 1, 8))
    end
  end
end

if what == 'stats' then
  -- READY, HELD, DIRTY, WAITING, DEAD, known, first deadline, its rest, holders,
  -- when the oldest hold began, the sum of these times, the holders
  local meta = call('HMGET', M, 'dirty', 'idle', 'cool')
  local cools = tonumber(meta[3] or 0)
  local due, due_rest = first_waiting(cools)
  local holders, seen, oldest, sum = {}, {}, '', 0
  each_held(function(_, rec, owner)
    if not seen[owner] then seen[owner] = true holders[#holders + 1] = owner end
    local got = sub(rec, 42, 49)
    local hi, lo = unpk('>i4I4', got)
    local ns = hi * 4294967296 + lo
    sum = sum + ns
    if oldest == '' or ns < (function() local a, b = unpk('>i4I4', oldest) return a * 4294967296 + b end)() then
      oldest = got
    end
  end)
  return {'OK', now8, card(R), card(H), tonumber(meta[1] or 0),
          call('ZCARD', D) - cools, call('ZCARD', X),
          known_keys() - (meta[2] or 0), due or '', due_rest or 0, #holders,
          oldest, string.format('%.17g', sum), holders}
end

if what == 'depths' then
  -- priority and number of keys in turn
  local out = {'OK', now8}
  local head = call('ZRANGE', R, 0, 0, 'WITHSCORES')
  while head[1] and head[2] ~= 'inf' do
    out[#out + 1] = -tonumber(head[2])
    out[#out + 1] = call('ZCOUNT', R, head[2], head[2])
    head = call('ZRANGEBYSCORE', R, '(' .. head[2], '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  end
  each_held(function(_, rec)
    local _, fl, prio = unpk('>BHi4', rec)
    if band(fl, DIRTY) ~= 0 then
      out[#out + 1] = prio
      out[#out + 1] = 1
    end
  end)
  local prios = {}
  for i = 0, call('ZCARD', D) - 1, 1000 do
    for _, member in ipairs(call('ZRANGE', D, i, i + 999)) do
      local rec = call('HGET', K, sub(member, 10))
      local st, fl = unpk('>BH', rec)
      if band(fl, WAITING) ~= 0 then
        prios[(unpk('>i4', rec, (st == 2 and 50 or 23) + 15))] = true
      end
    end
  end
  for prio in pairs(prios) do
    out[#out + 1] = prio
    out[#out + 1] = 0
  end
  return out
end

if what == 'scan' then
  -- the next cursor, keys and records, the last number, holders
  local page = call('HSCAN', K, argument, 'COUNT', 256)
  for i = 1, #page[2], 2 do
    if page[2][i] == '' then
      table.remove(page[2], i)
      table.remove(page[2], i)
      break
    end
  end
  return {'OK', now8, page[1], page[2], tonumber(call('HGET', M, 'n') or 0),
          holders_of(page[2])}
end

-- check: sentences about what does not fit together
local out, problems = {}, 0
local function complain(text)
  problems = problems + 1
  if problems <= 20 then out[#out + 1] = text end
end
-- A key as it is shown: a backslash, and bytes that are no printable
-- ASCII, as \xHH.
local function show(key)
  local text = string.gsub(sub(key, 1, 100), '[%z\1-\31\\\127-\255]',
                           function(c) return string.format('\\x%02x', byte(c)) end)
  return "'" .. text .. (#key > 100 and "...'" or "'")
end
local members = {[R] = 1, [D] = 0, [H] = 1, [X] = 0, [U] = 0} -- with the guards
local function expect(set, score, member, key, rec)
  members[set] = members[set] + 1
  local is = call('ZSCORE', set, member)
  if not is or tonumber(is) ~= tonumber(score) then
    complain('the key ' .. show(key) .. ' of state ' .. rec:byte(1) .. ' is not, or elsewhere, in ' .. set)
  end
end
local cursor, guard = '0', nil
repeat
  local page = call('HSCAN', K, cursor, 'COUNT', 1000)
  cursor = page[1]
  for i = 1, #page[2], 2 do
    local key, rec = page[2][i], page[2][i + 1]
    if key == '' then
      guard = rec
    else
      if not pcall(index, key, rec, 1, function(set, score, member) expect(set, score, member, key, rec) end) then
        complain('the record of the key ' .. show(key) .. ' is damaged')
      end
      if rec:byte(1) == 2 and #rec > 41 and not call('ZSCORE', S, sub(rec, 34, 41)) then
        complain('the key ' .. show(key) .. ' is HELD by a session that nobody knows')
      end
    end
  end
until cursor == '0'
if not guard or not call('ZSCORE', R, guard) or not call('ZSCORE', H, guard) then
  complain('a guard is missing: close all handles of the queue, and open one')
end
for set, n in pairs(members) do
  if call('ZCARD', set) ~= n then
    complain(set .. ' has ' .. call('ZCARD', set) .. ' members, but there are records for ' .. n)
  end
end
local counted = {dirty = dirty, idle = idle, cool = cool}
for name, n in pairs(counted) do
  if tonumber(call('HGET', M, name) or 0) ~= n then
    complain('meta says ' .. (call('HGET', M, name) or 0) .. ' ' .. name .. ', but there are ' .. n)
  end
end
-- What the usual batch believes (plain.lua).
local calm = call('HGET', M, 'calm')
if calm then
  local ok, _, due, due_rest, end1, end2, first, alive = pcall(unpk, '>I7I7HI7I7c8c8', calm)
  local ends, was, was_rest = call('ZRANGE', S, 0, 1, 'WITHSCORES'), first_due()
  if not ok or call('ZCARD', I) > 0 or due ~= (was or 0) or due_rest ~= (was_rest or 0) or
     first ~= ends[1] or end1 ~= tonumber(ends[2]) or end2 ~= tonumber(ends[4] or 0) or
     not call('ZSCORE', S, alive) then
    complain('meta says something else about deadlines, sessions and sleepers than there is: ' ..
             'delete its field calm')
  end
end
return {'OK', now8, out}
