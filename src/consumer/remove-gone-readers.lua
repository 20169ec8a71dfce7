-- Removes silent readers without pending entries from a group.
-- KEYS: topic ARGV: group, silence after which a reader is removed (ms)
-- Reply: number of removed readers
local gone = 0
for _, row in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])) do
  local reader = {}
  for i = 1, #row, 2 do
    reader[row[i]] = row[i + 1]
  end
  if reader.pending == 0 and reader.idle > tonumber(ARGV[2]) then
    redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], reader.name)
    gone = gone + 1
  end
end
return gone
