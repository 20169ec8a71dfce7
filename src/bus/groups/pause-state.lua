#!lua flags=no-writes
-- Returns the state of a channel's pause and of its buffer.
-- KEYS:  the organization's quarantine budget (quarantine-store.lua)
-- ARGV:  channel, number of the pause
-- Reply: 2 if over, 1 if the buffer is closing, 0 if it is still buffering
local held = redis.call('HMGET', KEYS[1], ARGV[1] .. ':over', ARGV[1] .. ':closes')
if held[1] and tonumber(held[1]) >= tonumber(ARGV[2]) then
  return 2
end
local time = redis.call('TIME')
if held[2] and tonumber(held[2]) > time[1] * 1000 + math.floor(time[2] / 1000) then
  return 1
end
return 0
