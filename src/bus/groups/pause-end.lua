#!lua
-- Ends a channel's pause if its buffer of deliveries is empty. If only a few deliveries are left, the script can close the buffer
-- for a moment, so that new ones are rejected. Otherwise the buffer of a busy channel would never become empty.
--
-- KEYS:  the organization's quarantine budget (quarantine-store.lua)
-- ARGV:
--   1. channel
--   2. number of the pause
--   3. how long to close the buffer (ms), or 0 to keep it open
--   4. maximum number of remaining deliveries at which to close it
--
-- Reply: 1 if the pause is over, 0 if deliveries are left
local call = redis.call
local left = call('ZCARD', string.sub(KEYS[1], 1, -2) .. 'x:' .. ARGV[1] .. ':paused')
if left == 0 then
  call('HSET', KEYS[1], ARGV[1] .. ':over', ARGV[2])
  call('HDEL', KEYS[1], ARGV[1] .. ':closes')
  return 1
end
if tonumber(ARGV[3]) > 0 and left <= tonumber(ARGV[4]) then
  local time = call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  call('HSET', KEYS[1], ARGV[1] .. ':closes', string.format('%d', now + ARGV[3]))
end
return 0
