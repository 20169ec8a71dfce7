#!lua flags=allow-oom
-- Deletes quarantine records of a channel that are older than a given age.
-- KEYS:  the organization's quarantine budget (quarantine-store.lua)
-- ARGV:  channel, age (ms; below 0 for all records), maximum number of records, indexes separated by spaces
-- Reply: number of deleted records. If it equals the maximum, there may be more.
local call = redis.call
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- @include ./quarantine-store.lua

return openQuarantineStore(KEYS[1]).expire(ARGV[1], ARGV[4], tonumber(ARGV[2]), tonumber(ARGV[3]))
