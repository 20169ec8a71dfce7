#!lua flags=allow-oom
-- Tells all gateways whose topics hold too much: also, and above all, where Redis is full.
-- KEYS: where it stands
-- ARGV: organizations as JSON, how long it holds (ms)
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
