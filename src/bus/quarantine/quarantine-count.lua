#!lua flags=no-writes
-- Counts the records of quarantine indexes.
-- KEYS:  indexes of one organization (quarantine-store.lua)
-- Reply: {number of records of each index ...}
local counts = {}
for n = 1, #KEYS do
  counts[n] = redis.call('ZCARD', KEYS[n])
end
return counts
