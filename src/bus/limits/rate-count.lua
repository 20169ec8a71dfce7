#!lua
-- Increments the counter of a fixed window. The first count starts the window.
-- KEYS:  counter
-- ARGV:  length of the window (s)
-- Reply: {count in this window, ms until the window ends}

redis.call("SET", KEYS[1], 0, "EX", ARGV[1], "NX")
local counted = redis.call("INCR", KEYS[1])
return { counted, redis.call("PTTL", KEYS[1]) }
