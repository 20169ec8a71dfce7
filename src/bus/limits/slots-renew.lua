#!lua
-- Holds slots for longer. One that ran out and was not taken since is held again.
-- KEYS: the places (slots.lua)
-- ARGV: token of the holder, how long from now (ms)
-- Reply: 1, or 0 where one of them is lost
local call = redis.call
for _, place in ipairs(KEYS) do
  if not call('ZSCORE', place, ARGV[1]) then
    return 0
  end
end
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for _, place in ipairs(KEYS) do
  call('ZADD', place, now + ARGV[2], ARGV[1])
  call('PEXPIRE', place, ARGV[2])
end
return 1
