#!lua flags=allow-oom
-- Reads a marker and moves its time forward, or replaces the marker.
--
-- KEYS:  marker, a hash with `id` and `at`, the time of the last check (ms)
-- ARGV:
--   1. new id, or '' to keep the marker
--   2. "1" to move the time forward
--
-- Reply: {id or '', time before (ms), time afterwards (ms)}
local id, before = unpack(redis.call('HMGET', KEYS[1], 'id', 'at'))
before = tonumber(before or 0)
if ARGV[1] ~= '' then
  id = ARGV[1]
elseif not id or ARGV[2] ~= '1' then
  return { id or '', before, before }
end
local time = redis.call('TIME')
local now = math.max(time[1] * 1000 + math.floor(time[2] / 1000), before)
redis.call('HSET', KEYS[1], 'id', id, 'at', string.format('%d', now))
return { id, before, now }
