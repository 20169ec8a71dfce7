#!lua
-- Refuses every run of a pull source that has begun, and moves nothing else: the next to take it over goes on from its cursor.
-- KEYS: cursor; then the topics of the source
-- ARGV: source
-- Reply: the epoch
local call = redis.call
-- @include ./source-epochs.lua
local source = ARGV[1]
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local epoch = math.max(tonumber(call('HGET', KEYS[1], 'e') or 0) + 1, highestEpoch(source, 2) + 1, now)
call('HSET', KEYS[1], 'e', string.format('%d', epoch))
stampEpochs(source, epoch, 2)
return string.format('%d', epoch)
