-- session.lua: a session begins, goes on, sleeps, or ends.
--
--   session, time, 'begin' | 'claim' | 'renew' | 'end', lease in microseconds,
--   number of partitions
--   → 'OK' or 'LOST', time; 'NEWER', 'PARTS': what the queue has
--   claim: begin without a session; only the number is checked, or stored
--   session, time, 'sleep' | 'watch', the earliest deadline that it knows, in
--   microseconds (beyond 2^53 a score is not exact), and how many READY and HELD
--   keys
--   → 'OK', or 'NEWS': it must look, and does not count as asleep, unless it
--   watches and lives
local sid = ARGV[1]
if ARGV[3] == 'end' then
  call('ZREM', S, sid)
  call('ZREM', I, sid)
  call('DEL', bed(sid))
  return {'OK', now8}
end
if ARGV[3] == 'sleep' or ARGV[3] == 'watch' then
  local due, ready, held = first_due(), card(R), card(H)
  local knew, knew_held = tonumber(ARGV[5]), tonumber(ARGV[6])
  local oldest, living = call('ZRANGE', S, 0, 0, 'WITHSCORES'), lives(sid)
  local news = not living or tonumber(oldest[2]) <= us or ready > knew or
               (knew > 0 and ready == 0) or (knew_held > 0 and held == 0) or
               due and due + 2 < tonumber(ARGV[4])
  if not news or living and ARGV[3] == 'watch' then
    insist()
    call('ZADD', I, 'NX', us, sid)
  end
  return {news and 'NEWS' or 'OK', now8}
end
if ARGV[3] == 'renew' and not lives(sid) then return {'LOST', now8} end
insist()
if ARGV[3] == 'begin' or ARGV[3] == 'claim' then
  local made = call('HMGET', M, 'version', 'parts')
  local version, parts = made[1], made[2] or '1'
  if not version then
    call('HSET', M, 'version', '1')
    if ARGV[5] ~= '1' then call('HSET', M, 'parts', ARGV[5]) end
  elseif tonumber(version) > 1 then
    return {'NEWER', now8, version}
  elseif parts ~= ARGV[5] then
    return {'PARTS', now8, parts}
  end
  if ARGV[3] == 'claim' then return {'OK', now8} end
  local guard = string.rep('\255', 80)
  call('HSET', K, '', guard)
  call('ZADD', R, '+inf', guard)
  call('ZADD', H, 0, guard)
end
call('ZADD', S, us + tonumber(ARGV[4]), sid)
return {'OK', now8}
