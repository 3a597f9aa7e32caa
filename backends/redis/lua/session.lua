-- session.lua: a session begins, goes on, sleeps, or ends.
--
--   session, time, 'begin' | 'check' | 'claim' | 'renew' | 'forgive' | 'end', lease
--   in microseconds, the session's number plus 1, number of partitions, the name
--   of its process
--   → 'OK' or 'LOST', time; renew: how many keys it holds; check: 1 if the number is
--   stored; 'NEWER', 'PARTS': what the queue has
--   claim: begin without a session; only the number is checked, or stored; check:
--   not even that
--   session, time, 'sleep' | 'watch', the earliest deadline that it knows, in
--   microseconds (beyond 2^53 a score is not exact), and how many READY and HELD
--   keys
--   → 'OK', or 'NEWS': it must look, and does not count as asleep, unless it
--   watches and lives
local sid = ARGV[1]
if ARGV[3] == 'end' then
  stir()
  call('ZREM', S, sid)
  call('HDEL', who(), sid)
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
    stir()
    call('ZADD', I, 'NX', us, sid)
  end
  return {news and 'NEWS' or 'OK', now8}
end
-- The server's clock went forward: all sessions that nobody has ended yet get the
-- longest lease that any of them has. Their holders, who do not know of it, count
-- on no more. Not again for two leases: if the clock of a client is wrong all the
-- time, sessions end even so.
if ARGV[3] == 'forgive' then
  local known = call('HMGET', M, 'forgiven', 'lease')
  local before, lease = tonumber(known[1] or 0), tonumber(known[2] or 0)
  if us < before or us - before > 2 * lease then
    insist()
    stir()
    local ends = call('ZRANGEBYSCORE', S, '(0', string.format('(%.0f', us + lease))
    for _, id in ipairs(ends) do call('ZADD', S, us + lease, id) end
    call('HSET', M, 'forgiven', us)
  end
  return {lives(sid) and 'OK' or 'LOST', now8}
end
if ARGV[3] == 'renew' and not lives(sid) then return {'LOST', now8} end
insist()
if ARGV[3] ~= 'renew' then
  local made = call('HMGET', M, 'version', 'parts')
  local version, parts = made[1], made[2] or '1'
  if version and tonumber(version) > 1 then return {'NEWER', now8, version} end
  local changes = version and parts ~= ARGV[6]
  if changes then
    -- A queue without partitions, which has all its keys here, may get them
    -- while it has no key, and no session, not even one that may come back.
    if parts ~= '1' or known_keys() > 0 or call('ZCARD', S) > 0 then
      return {'PARTS', now8, parts}
    end
  end
  if ARGV[3] == 'check' then
    return {'OK', now8, version and not changes and 1 or 0}
  end
  if changes or not version then
    call('HSET', M, 'version', '1')
    if ARGV[6] ~= '1' then call('HSET', M, 'parts', ARGV[6]) end
  end
  if ARGV[3] == 'claim' then return {'OK', now8} end
  local guard = string.rep('\255', 80)
  call('HSET', K, '', guard)
  call('ZADD', R, '+inf', guard)
  call('ZADD', H, 0, guard)
  local lease = tonumber(call('HGET', M, 'lease') or 0)
  if tonumber(ARGV[4]) > lease or call('ZCARD', S) == 0 then
    call('HSET', M, 'lease', ARGV[4])
  end
end
stir()
call('HSET', M, 'seen', us)
call('ZADD', S, us + tonumber(ARGV[4]), sid)
-- Names of sessions that others have ended are forgotten when there are more names
-- than sessions.
if ARGV[3] ~= 'renew' then
  call('HSET', who(), sid, ARGV[7])
  local cursor = call('HLEN', who()) > call('ZCARD', S) and '0' or nil
  while cursor do
    local page = call('HSCAN', who(), cursor, 'COUNT', 1000)
    for i = 1, #page[2], 2 do
      if not call('ZSCORE', S, page[2][i]) then call('HDEL', who(), page[2][i]) end
    end
    cursor = page[1] ~= '0' and page[1] or nil
  end
end
return {'OK', now8, call('ZLEXCOUNT', H, '[' .. sid, '(' .. ARGV[5])}
