#!lua
-- Ends a pause once its buffer is empty. Where little is left it closes: deliveries that come now are refused for a moment instead of
-- being buffered behind, or the buffer would never be empty.
-- KEYS: the organization's budget (quarantine-store.lua)
-- ARGV: channel, pause, how long it closes (ms; 0: not yet), what little is
-- Reply: 1 where it is over, 0 where something is left
local call = redis.call
local left = call('ZCARD', string.sub(KEYS[1], 1, -2) .. 'x:' .. ARGV[1] .. ':paused')
if left == 0 then
  call('HSET', KEYS[1], ARGV[1] .. ':over', ARGV[2])
  call('HDEL', KEYS[1], ARGV[1] .. ':closes')
  return 1
end
if tonumber(ARGV[3]) > 0 and left <= tonumber(ARGV[4]) then
  local time = call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  call('HSET', KEYS[1], ARGV[1] .. ':closes', string.format('%d', now + ARGV[3]))
end
return 0
