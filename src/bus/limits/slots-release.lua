#!lua flags=allow-oom
-- Releases a holder's slots and reserves free slots for the names that have waited longest.
--
-- KEYS:  the semaphores (slots.lua)
-- ARGV:
--   1. token of the holder
--   2. how long a slot stays reserved (ms)
--   then the limit of each semaphore
--
-- Reply: {name, waiting since (ms), name, waiting since (ms), ...}, the names with a new reservation
local call = redis.call
local reservedMs = tonumber(ARGV[2])
-- @include ./slots.lua
local reservations = {}
for i, semaphore in ipairs(KEYS) do
  call('ZREM', semaphore, ARGV[1])
  reserveFreeSlots(semaphore, tonumber(ARGV[2 + i]), reservations)
end
return reservations
