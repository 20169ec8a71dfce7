#!lua flags=allow-oom
-- Stores the organizations whose topics are over their storage limit. The flag `allow-oom` lets the script run when Redis is
-- full, which is when the list matters most.
-- KEYS:  the list
-- ARGV:  organization ids (JSON array), ttl (ms)
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
