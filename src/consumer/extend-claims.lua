-- Resets the idle time of a reader's pending entries, so that no other reader claims them.
-- KEYS:  topic.
-- ARGV:  group, reader, then entry ids.
-- Reply: the entry ids that were acknowledged or claimed by another reader
local lost = {}
for i = 3, #ARGV do
  local pending = redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[i], ARGV[i], 1, ARGV[2])
  if #pending == 0 then
    lost[#lost + 1] = ARGV[i]
  else
    redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, ARGV[i], 'JUSTID')
  end
end
return lost
