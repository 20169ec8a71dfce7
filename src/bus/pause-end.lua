#!lua
-- Says that a pause is over where nothing that it kept back is left.
-- KEYS: the organization's budget (quarantine-store.lua)
-- ARGV: channel, pause
-- Reply: 1 where it is over, 0 where something is left
local index = string.sub(KEYS[1], 1, -2) .. 'x:' .. ARGV[1] .. ':paused'
if redis.call('EXISTS', index) == 1 then
  return 0
end
redis.call('HSET', KEYS[1], ARGV[1] .. ':over', ARGV[2])
return 1
