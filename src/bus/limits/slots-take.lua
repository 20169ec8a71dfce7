#!lua
-- Takes one slot of each semaphore, or no slot at all. If a semaphore is full and has a queue, the caller's name joins that
-- queue.
--
-- KEYS:  the semaphores (slots.lua)
-- ARGV:
--   1. token of the holder
--   2. name of the caller
--   3. time since which it waits (ms)
--   4. how long to hold the slots (ms)
--   5. how long a freed slot stays reserved (ms)
--   then two arguments per semaphore:
--   - its limit
--   - "1" if callers can queue for it, else "0"
--
-- Reply: {full, name, waiting since (ms), ...}. `full` is the index of the first full semaphore from 1, or 0 if the slots were
-- taken. The names are those with a new reservation.
local call = redis.call
local token, name, since, heldMs, reservedMs = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
-- @include ./slots.lua
local longest = now + math.max(heldMs, reservedMs)
local full = 0
for i, semaphore in ipairs(KEYS) do
  -- Shortens holds that end too far in the future. Otherwise a clock that was set back would keep a dead holder's slots.
  for _, holder in ipairs(call('ZRANGEBYSCORE', semaphore, string.format('(%d', longest), '+inf')) do
    call('ZADD', semaphore, longest, holder)
  end
  call('ZREM', semaphore, 'r:' .. name)
  if full == 0 and countTaken(semaphore) >= tonumber(ARGV[4 + 2 * i]) then
    full = i
  end
end

local reservations = { full }
if full == 0 then
  for _, semaphore in ipairs(KEYS) do
    call('ZREM', semaphore .. ':w', name)
    call('ZADD', semaphore, now + heldMs, token)
    call('PEXPIRE', semaphore, heldMs)
  end
elseif ARGV[5 + 2 * full] == '1' then
  call('ZADD', KEYS[full] .. ':w', 'LT', since, name)
  call('PEXPIRE', KEYS[full] .. ':w', QUEUE_TTL_MS)
end
-- Reserves free slots for queued names. A slot is free here if its holder died, or if it was reserved for this caller and another
-- semaphore is full.
for i, semaphore in ipairs(KEYS) do
  reserveFreeSlots(semaphore, tonumber(ARGV[4 + 2 * i]), reservations)
end
return reservations
