-- Reads entries that are pending for a reader.
-- KEYS:  topic.
-- ARGV:  group, reader, then entry ids.
-- Reply: for each id, the fields of the entry; 0 if it is no longer pending for this reader; 1 if retention has trimmed it
local entries = {}
for i = 3, #ARGV do
  local id = ARGV[i]
  if #redis.call('XPENDING', KEYS[1], ARGV[1], id, id, 1, ARGV[2]) == 0 then
    entries[#entries + 1] = 0
  else
    local rows = redis.call('XRANGE', KEYS[1], id, id)
    entries[#entries + 1] = rows[1] and rows[1][2] or 1
  end
end
return entries
