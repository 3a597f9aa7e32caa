-- SPDX-License-Identifier: MIT
-- plain.lua: how is a batch carried out in which all is as usual?
--
-- Between head.lua and common.lua in step.lua's script, whose arguments and reply
-- it has. Usual is: no deadline has passed, all sessions live, none sleeps that
-- must be woken; each key is named once; keys to finish are held, and have no flags
-- or other parts; keys to add are absent, or READY with priority 0; READY keys are
-- plain. It looks first. If something is not as usual it has changed nothing, and
-- the rest of the script does the batch. Mostly it is all that is executed, so it
-- is written for speed: it makes no functions, and few tables, strings and calls.
--
-- A key that is added and handed out by the same batch never enters `ready`.
--
-- What was found about deadlines, sessions and sleepers is kept in `calm`: until
-- when it holds in any case, the first deadline (0: none), its rest, the ends of
-- the first two sessions (0: none), the first session, and one that lives. No
-- session sleeps. Each script that changes what it says deletes it (stir()).
local sid = ARGV[1]
local nf, na, wanted = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local ends
do
  local calm, till, due, rest_of_due, end1, end2, first, lives = meta[5], 0, nil, nil, nil, nil, nil, nil
  local usual = ARGV[4] == '0' and ARGV[8] == '' and nf + na < 1000 and wanted < 1000
  if calm and #calm ~= 46 then calm = nil end
  if calm then till, due, rest_of_due, end1, end2, first, lives = unpk('>I7I7HI7I7c8c8', calm) end
  if calm and till > us then
    calm = ''
    if due == 0 then due = nil end
    if end2 == 0 then end2 = nil end
    usual = usual and (first == sid or lives == sid or call('ZSCORE', S, sid))
  elseif usual then
    ends = call('ZRANGE', S, '0', '1', 'WITHSCORES')
    local head = call('ZRANGE', D, '0', '0', 'WITHSCORES')
    due, rest_of_due = tonumber(head[2]), head[1] and unpk('>H', head[1]) or 0
    first, end1, end2 = ends[1], tonumber(ends[2]), tonumber(ends[4])
    calm = us > 0 and call('ZCARD', I) == 0 and ''
    usual = first and end1 > us and not (due and due <= us) and (na == 0 or calm) and
            (first == sid or ends[3] == sid or call('ZSCORE', S, sid))
    till = due and due < end1 and due or end1
    calm = usual and calm and pack('>I7I7HI7I7c8c8', till, due or 0, rest_of_due, end1, end2 or 0, first, sid)
  end
  local recs = usual and nf + na > 0 and call('HMGET', K, unpack(ARGV, 10, 9 + nf + na))
  local named, made, added = {}, 0, nil
  for i = 1, usual and nf or 0 do
    local key, rec = ARGV[9 + i], recs[i]
    if named[key] or not rec or #rec ~= 49 or sub(rec, 1, 3) ~= '\2\0\0' or
       sub(rec, 27, 41) ~= ARGV[9 + nf + na + i] then
      usual = false
      break
    end
    named[key] = true
  end
  for i = nf + 1, usual and nf + na or 0 do
    local key, rec = ARGV[9 + i], recs[i]
    if named[key] or rec and (#rec ~= 22 or sub(rec, 1, 7) ~= PLAIN) then
      usual = false
      break
    end
    named[key] = true
    if not rec then made = made + 1 end
  end
  local members = usual and wanted > 0 and call('ZRANGE', R, '0', wanted - 1) or {}
  local n = #members
  if n > 0 and byte(members[n]) == 255 then n = n - 1 end -- the guard
  for i = 1, n do
    if byte(members[i], 8) ~= 0 then usual = false break end
  end

  if usual then
    local out = {'OK', now8, 0, 0, 0, 0, dirty_keys, due or '', rest_of_due, '', 0, 0, '', ''}
    local hset, at = {}, 0
    if nf > 0 then
      local gone = {}
      for i = 1, nf do gone[i] = sid .. ARGV[9 + i] end
      call('ZREM', H, unpack(gone))
      call('HDEL', K, unpack(ARGV, 10, 9 + nf))
    end
    local old, ready, rank = n, nil, 0
    if made > 0 then
      for i = nf + 1, nf + na do
        if not recs[i] then
          local key = ARGV[9 + i]
          last = last + 1
          local seq = pack('>I7', last)
          local member = seq .. '\0' .. now8 .. key
          if n < wanted then
            n = n + 1
            members[n] = member
          else
            ready = ready or {}
            ready[rank + 1], ready[rank + 2] = '0', member
            rank = rank + 2
            hset[at + 1], hset[at + 2] = key, PLAIN .. seq .. now8
            at = at + 2
          end
        end
      end
    end
    if made < na then
      added = {}
      for i = 1, na do added[i] = recs[nf + i] and 'm' or 'n' end
      out[14] = table.concat(added)
    end
    out[11] = last + 1
    local held
    if n > 0 then
      local front = '\2\0\0' .. ZERO8 .. ZERO8 .. ZERO4 .. '\0\0\0'
      local back = sid .. now8
      held = {}
      for i = 1, n do
        local member = members[i]
        local key = sub(member, 17)
        last = last + 1
        hset[at + 1], hset[at + 2] = key, front .. pack('>I7', last) .. back
        at = at + 2
        held[2 * i - 1], held[2 * i] = '0', sid .. key
        out[14 + i] = member
      end
    end
    -- An add needs memory, and is refused if there is none, unless keys were
    -- finished; a get must not be.
    if old > 0 and made == 0 then call('ZREMRANGEBYRANK', R, '0', old - 1) end
    if at > 0 then call('HSET', K, unpack(hset)) end
    if old > 0 and made > 0 then call('ZREMRANGEBYRANK', R, '0', old - 1) end
    if ready then call('ZADD', R, unpack(ready)) end
    if held then call('ZADD', H, unpack(held)) end
    if last ~= saved then
      if calm and calm ~= '' then
        call('HSET', M, 'n', last, 'calm', calm)
      else
        call('HSET', M, 'n', last)
      end
    elseif na > 0 and nf == 0 then
      call('ZREM', I, '')
    end
    -- If a get found less than it wanted there is no more; if it found a key, that
    -- one is HELD, at least.
    if wanted == 0 or n == wanted then out[5] = call('ZCARD', R) - 1 end
    out[6] = n > 0 and n or call('ZCARD', H) - 1
    if first ~= sid then out[10] = end1 else out[10] = end2 or '' end
    return out
  end
end
