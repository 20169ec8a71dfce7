-- Keeps entries in the reader's hand: none of them may look like a dead reader's.
-- KEYS: topic
-- ARGV: group, reader, then the entries' ids
-- Reply: the ids that are another's by now, or handled
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
