#!lua
-- Replaces the members of a set atomically, so that no reader sees it empty.
-- KEYS:  set
-- ARGV:  members
redis.call('DEL', KEYS[1])
for i = 1, #ARGV, 1000 do
  redis.call('SADD', KEYS[1], unpack(ARGV, i, math.min(i + 999, #ARGV)))
end
