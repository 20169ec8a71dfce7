#!lua
-- Sets the cursor of a pull source by hand, or resets it. Its runner is refused from now on, and no wait goes on: not
-- even one that its sender asked for, which may have been a mistake, or another sender; nor that of its interval.
-- KEYS: cursor; then, on one Redis, the topics of the source
-- ARGV: source; the version that it must be at, or ""; ">" and the new value, or "" to begin anew
-- Reply: the new version, or -1 where it is at another
local call = redis.call
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
-- @include ./source-epochs.lua
local source, expected, value = ARGV[1], ARGV[2], ARGV[3]
local held = call('HMGET', KEYS[1], 'e', 'v', 's')
local version = tonumber(held[2] or 0)
if expected ~= '' and tonumber(expected) ~= version then
  return -1
end
local epoch = math.max(tonumber(held[1] or 0) + 1, highestEpoch(source, 2) + 1, now)
local at = string.format('%d', now)
call('HSET', KEYS[1], 'e', string.format('%d', epoch), 'v', version + 1, 'u', at)
call('HDEL', KEYS[1], 'n', 'nl', 'r', 'rl', 'f', 'b', 'd', 'w', 'ws')
if value == '' then
  call('HDEL', KEYS[1], 'c')
  call('HSET', KEYS[1], 's', at)
else
  call('HSET', KEYS[1], 'c', string.sub(value, 2), 's', held[3] or at)
end
stampEpochs(source, epoch, 2)
return version + 1
