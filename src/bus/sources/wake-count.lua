#!lua
-- Counts a wake of a pull source.
--
-- KEYS:  count of wakes
-- ARGV:
--   1. time of the wake (ms)
--   2. lifetime of the count (seconds)
local call = redis.call
call('HINCRBY', KEYS[1], 'n', 1)
call('HSET', KEYS[1], 'at', ARGV[1])
call('EXPIRE', KEYS[1], ARGV[2])
return 1
