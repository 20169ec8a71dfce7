#!lua
-- Counts into a window of fixed length, which begins with its first count.
-- KEYS: counter
-- ARGV: how many to add, length of the window (s)
-- Reply: {counted in this window, milliseconds until it ends}

redis.call("SET", KEYS[1], 0, "EX", ARGV[2], "NX")
local counted = redis.call("INCRBY", KEYS[1], ARGV[1])
return { counted, redis.call("PTTL", KEYS[1]) }
