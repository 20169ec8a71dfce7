#!lua flags=allow-oom
-- Releases a holder's slots and reserves free slots for the names that wait longest.
-- KEYS:  the semaphores (slots.lua)
-- ARGV:  token of the holder, how long a slot stays reserved (ms), then the limit of each semaphore
-- Reply: names with a new reservation, each followed by the time since which it waits (ms): {name, since, name, since, ...}
local call = redis.call
local reservedMs = tonumber(ARGV[2])
-- @include ./slots.lua
local reservations = {}
for i, semaphore in ipairs(KEYS) do
  call('ZREM', semaphore, ARGV[1])
  reserveFreeSlots(semaphore, tonumber(ARGV[2 + i]), reservations)
end
return reservations
