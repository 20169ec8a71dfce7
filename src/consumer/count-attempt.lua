-- Records one more attempt at an entry, unless another reader has claimed it.
-- KEYS: topic
-- ARGV: group, reader, entry id, attempts with this one
-- Reply: 1, or 0 where another reader has it
local pending = redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[3], ARGV[3], 1, ARGV[2])
if #pending == 0 then
  return 0
end
redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, ARGV[3], 'RETRYCOUNT', ARGV[4], 'JUSTID')
return 1
