-- Stores the number of attempts at an entry, unless another reader has claimed the entry.
-- KEYS:  topic.
-- ARGV:  group, reader, entry id, number of attempts including this one.
-- Reply: 1, or 0 if another reader has claimed the entry
local pending = redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[3], ARGV[3], 1, ARGV[2])
if #pending == 0 then
  return 0
end
redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, ARGV[3], 'RETRYCOUNT', ARGV[4], 'JUSTID')
return 1
