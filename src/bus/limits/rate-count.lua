#!lua
-- Counts one into a window of fixed length, which begins with its first count.
-- KEYS: counter
-- ARGV: length of the window (s)
-- Reply: {counted in this window, milliseconds until it ends}

redis.call("SET", KEYS[1], 0, "EX", ARGV[1], "NX")
local counted = redis.call("INCR", KEYS[1])
return { counted, redis.call("PTTL", KEYS[1]) }
