-- SPDX-License-Identifier: MIT
-- plain.lua: how is a batch carried out in which all is as usual?
--
-- Between head.lua and common.lua in step.lua's script, whose arguments and reply
-- it has. Usual is: no deadline has passed, all sessions live, none sleeps that
-- must be woken; each key is named once; keys to finish are held, and have no flags
-- or other parts; keys to add are absent, or READY with priority 0; READY keys are
-- plain. It looks first. If something is not as usual it has changed nothing, and
-- the rest of the script does the batch. Mostly it is all that is executed, so it
-- is written for speed: it makes no functions, and few tables and strings.
local sid = ARGV[1]
local nf, na, wanted = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local ends = call('ZRANGE', S, '0', '1', 'WITHSCORES')
do
  local head = call('ZRANGE', D, '0', '0', 'WITHSCORES')
  local due = tonumber(head[2])
  local usual = ARGV[4] == '0' and ARGV[8] == '' and nf + na < 1000 and wanted < 1000 and
                (ends[1] == sid or ends[3] == sid) and tonumber(ends[2]) > us and
                not (due and due <= us) and (na == 0 or call('ZCARD', I) == 0)
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
    local hset, at = {}, 0
    if nf > 0 then
      local gone = {}
      for i = 1, nf do gone[i] = sid .. ARGV[9 + i] end
      call('ZREM', H, unpack(gone))
      call('HDEL', K, unpack(ARGV, 10, 9 + nf))
    end
    if made > 0 then
      local ready = {}
      for i = nf + 1, nf + na do
        if not recs[i] then
          local key = ARGV[9 + i]
          last = last + 1
          local seq = pack('>I7', last)
          ready[at + 1], ready[at + 2] = '0', seq .. '\0' .. now8 .. key
          hset[at + 1], hset[at + 2] = key, PLAIN .. seq .. now8
          at = at + 2
        end
      end
      call('ZADD', R, unpack(ready))
      if n < wanted then
        members = call('ZRANGE', R, '0', wanted - 1)
        n = #members
        if byte(members[n]) == 255 then n = n - 1 end
      end
    end
    if made < na then
      added = {}
      for i = 1, na do added[i] = recs[nf + i] and 'm' or 'n' end
      added = table.concat(added)
    end
    local out = {'OK', now8, 0, 0, 0, 0, dirty_keys, due or '',
                 due and unpk('>H', head[1]) or 0, '', last + 1, 0, '', added or ''}
    if n > 0 then
      local front = '\2\0\0' .. ZERO8 .. ZERO8 .. ZERO4 .. '\0\0\0'
      local back, held = sid .. now8, {}
      for i = 1, n do
        local member = members[i]
        local key = sub(member, 17)
        last = last + 1
        hset[at + 1], hset[at + 2] = key, front .. pack('>I7', last) .. back
        at = at + 2
        held[2 * i - 1], held[2 * i] = '0', sid .. key
        out[14 + i] = member
      end
      call('ZREMRANGEBYRANK', R, '0', n - 1)
      call('ZADD', H, unpack(held))
    end
    if at > 0 then call('HSET', K, unpack(hset)) end
    if last ~= saved then
      call('HSET', M, 'n', last)
    elseif na > 0 and nf == 0 then
      call('ZREM', I, '')
    end
    out[5], out[6] = call('ZCARD', R) - 1, call('ZCARD', H) - 1
    local other = ends[1] == sid and ends[4] or ends[1] ~= sid and ends[2]
    if other then out[10] = tonumber(other) end
    return out
  end
end
