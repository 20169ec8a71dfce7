#!lua flags=no-writes
-- Checks whether an entry is among a group's dead letters, without returning their contents.
-- KEYS:  dead letters of a group on a topic
-- ARGV:  entry id, maximum number of dead letters to scan, maximum bytes to scan. Scans the newest first.
-- Reply: 1 if found, else 0
local to, left, bytes_left = '+', tonumber(ARGV[2]), tonumber(ARGV[3])
while left > 0 and bytes_left > 0 do
  -- Reads one dead letter at a time, because a reply with many would hold all their payloads in memory.
  local letter = redis.call('XREVRANGE', KEYS[1], to, '-', 'COUNT', 1)[1]
  if not letter then return 0 end
  if letter[2][2] == ARGV[1] then return 1 end
  for _, field in ipairs(letter[2]) do bytes_left = bytes_left - #field end
  to = '(' .. letter[1]
  left = left - 1
end
return 0
