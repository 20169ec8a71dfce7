#!lua flags=allow-oom
-- Deletes a quarantine record. Also deletes its delivery if this was the delivery's last record.
-- KEYS:  the organization's quarantine budget (quarantine-store.lua)
-- ARGV:  record id
-- Reply: 1 if the record existed, else 0
local call, time, now = redis.call, {}, 0

-- @include ./quarantine-store.lua

return openQuarantineStore(KEYS[1]).drop(ARGV[1])
