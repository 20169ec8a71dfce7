#!lua flags=allow-oom
-- Removes one quarantine record, and its delivery with the last that points to it.
-- KEYS: the organization's budget
-- ARGV: record
-- Reply: 1 where it was there, else 0
local call, time, now = redis.call, {}, 0

-- @include ./quarantine-store.lua

return openQuarantineStore(KEYS[1]).drop(ARGV[1])
