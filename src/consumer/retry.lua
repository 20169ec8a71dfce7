-- Writes down that an entry is handed to a handler once more; unless it is another reader's by now.
-- KEYS: topic
-- ARGV: group, reader, id of the entry, attempts with this one
-- Reply: 1, or 0 where it is another's
local pending = redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[3], ARGV[3], 1, ARGV[2])
if #pending == 0 then
  return 0
end
redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, ARGV[3], 'RETRYCOUNT', ARGV[4], 'JUSTID')
return 1
