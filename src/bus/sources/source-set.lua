#!lua
-- Sets or resets the cursor of a pull source on a user's request. Fences the current run by raising the epoch. Also ends every
-- wait: the one after a failure, the one between runs, and the one that the sender requested. The sender's request may have been
-- a mistake, or the source may point to another sender now.
--
-- KEYS:  cursor; then the topics of the source (none in a Cluster)
-- ARGV:
--   1. source
--   2. version that the cursor must have, or "" for any
--   3. ">" and the new value, or "" to reset the cursor
--
-- Reply: the new version, or -1 if the cursor has another version
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
