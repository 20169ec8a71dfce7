#!lua
-- Extends a holder's slots. An expired slot that is still in the set is extended too.
--
-- KEYS:  the semaphores (slots.lua)
-- ARGV:  token of the holder, how long to hold the slots from now on (ms)
--
-- Reply: 1, or 0 if at least one of the slots is lost
local call = redis.call
for _, semaphore in ipairs(KEYS) do
  if not call('ZSCORE', semaphore, ARGV[1]) then
    return 0
  end
end
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for _, semaphore in ipairs(KEYS) do
  call('ZADD', semaphore, now + ARGV[2], ARGV[1])
  call('PEXPIRE', semaphore, ARGV[2])
end
return 1
