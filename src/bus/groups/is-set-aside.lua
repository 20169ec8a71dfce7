#!lua flags=no-writes
-- Finds an entry among the dead letters of readers without handing out what is in them.
-- KEYS: dead letters of a group on a topic
-- ARGV: entry id, most letters, most bytes looked at; the newest come first
-- Reply: 1 where it is there, else 0
local to, left, bytes_left = '+', tonumber(ARGV[2]), tonumber(ARGV[3])
while left > 0 and bytes_left > 0 do
  -- One at a time: a reply of many would be as large as all their payloads.
  local letter = redis.call('XREVRANGE', KEYS[1], to, '-', 'COUNT', 1)[1]
  if not letter then return 0 end
  if letter[2][2] == ARGV[1] then return 1 end
  for _, field in ipairs(letter[2]) do bytes_left = bytes_left - #field end
  to = '(' .. letter[1]
  left = left - 1
end
return 0
