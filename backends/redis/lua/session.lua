-- session.lua: a session begins, goes on, or ends.
--
--   session, time, 'begin' | 'renew' | 'end', lease in microseconds
--   → 'OK' or 'LOST', time
local sid = ARGV[1]
read_time(ARGV[2])
if ARGV[3] == 'end' then
  call('ZREM', S, sid)
  return {'OK', now8}
end
if ARGV[3] == 'renew' and not lives(sid) then return {'LOST', now8} end
if ARGV[3] == 'begin' then
  local version = call('HGET', M, 'version')
  if not version then
    call('HSET', M, 'version', '1')
  elseif tonumber(version) > 1 then
    return {'NEWER', now8, version}
  end
end
call('ZADD', S, us + tonumber(ARGV[4]), sid)
return {'OK', now8}
