#!lua
-- Raises the epoch of a pull source, so that writes of all its current runs are rejected. The cursor value stays, so the next
-- owner continues from it.
-- KEYS:  cursor; then all topics of the source
-- ARGV:  source
-- Reply: the new epoch, as a string
local call = redis.call
-- @include ./source-epochs.lua
local source = ARGV[1]
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local epoch = math.max(tonumber(call('HGET', KEYS[1], 'e') or 0) + 1, highestEpoch(source, 2) + 1, now)
call('HSET', KEYS[1], 'e', string.format('%d', epoch))
stampEpochs(source, epoch, 2)
return string.format('%d', epoch)
