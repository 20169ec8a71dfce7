#!lua flags=allow-oom
-- Removes the quarantine records of a channel that are older than an age.
-- KEYS: the organization's budget
-- ARGV: channel, age (ms; below 0: all), most records, indexes (quarantine-store.lua), parted by spaces
-- Reply: how many were removed; as many as the most: there may be more
local call = redis.call
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- @include ./quarantine-store.lua

return openQuarantineStore(KEYS[1]).expire(ARGV[1], ARGV[4], tonumber(ARGV[2]), tonumber(ARGV[3]))
