-- SPDX-License-Identifier: MIT
-- head.lua: how are the keys of a queue laid out, and what time is it? Begins every
-- script: its first argument is a session, the second one the time.
--
-- Item bytes and records are arguments and values only, never part of a name or
-- of a script. A record (record.c) is
--
--   state B, flags H, priority i4, seq I7, since 8     READY, DIRTY; DEAD
--   priority i4, fence I7, session 8, since 8          HELD
--   at 8, arrival I7, priority i4                      WAITING, COOLDOWN
--   4 times 8                                          THROTTLED
--   failures I4, failed at 8, expiries I4              FAILS
--   tokens 8, written at 8                             BUCKET
--
-- with the parts that its state (1 READY, 2 HELD, 3 neither, 4 DEAD) and flags
-- name, big-endian. Times are in nanoseconds; scores in microseconds, which a
-- double holds exactly, and the rest is part of the member.
--
-- Small hashes and sorted sets are lists that the server searches from the
-- beginning. `k`, `ready` and `held` always have one more entry, the guard, which
-- is too long for that (session.lua): the empty key, a member behind all others,
-- and one of no session.
--
-- The members of `ready` are seq I7, '\0', since 8, key, if the record says no more
-- than that (READY, without flags, priority 0): the common ones are handed out
-- without a look at their records; of the others: seq I7, '\1', key.
local K, R, D, H, S = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local M, I, X, U = KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local call, pack, unpk = redis.call, struct.pack, struct.unpack
local sub, byte, band, floor = string.sub, string.byte, bit.band, math.floor
local DIRTY, BACKOFF, COVERS, DEBOUNCED, WAITING = 1, 2, 4, 8, 16
local COOLDOWN, THROTTLED, FAILS, BUCKET = 32, 64, 128, 256
local ZERO4, ZERO8 = '\0\0\0\0', '\0\0\0\0\0\0\0\0'
local PLAIN = '\1\0\0\0\0\0\0' -- how a record begins that says no more

-- The time: of the server, or given by a client whose clock is a fake one. In
-- microseconds, the rest in nanoseconds; as in records.
--
-- It goes on when the server's clock steps back: sessions write down what time it
-- was when they renewed their leases, `seen`, and the queue's time is `ahead` of
-- the clock from then on, until the clock steps forward, or nobody has renewed for
-- so long that it is there, too.
local us, rest, now8 = nil, 0, ARGV[2]
local meta = call('HMGET', M, 'n', 'dirty', 'seen', 'ahead', 'calm')
if now8 ~= '' then
  local hi, lo = unpk('>i4I4', now8)
  local t = hi % 1000 * 4294967296 + lo
  us, rest = floor(hi / 1000) * 4294967296 + floor(t / 1000), t % 1000
else
  local t = call('TIME')
  us = t[1] * 1000000 + t[2]
  local seen, ahead = tonumber(meta[3] or 0), tonumber(meta[4] or 0)
  if us + ahead < seen or ahead > 0 and us >= seen then
    ahead = us < seen and seen - us or 0
    call('ZREM', I, '') -- as insist()
    call('HSET', M, 'ahead', ahead)
  end
  us = us + ahead
  local l = us % 16777216 * 1000
  now8 = pack('>I5I3', floor(us / 16777216) * 1000 + floor(l / 16777216), l % 16777216)
end

-- The last number in use: of places, fences, arrivals, which only grow. They are
-- never below the time, so that a server that lost its data does not hand out old
-- fences. `saved`: as it is written; and how many keys are DIRTY.
local last, dirty_keys = tonumber(meta[1] or 0), tonumber(meta[2] or 0)
if last < us and us < 4503599627370496 then last = us end
local saved = last
