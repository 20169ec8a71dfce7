#!lua flags=no-writes
-- Reads the entries after given ids in several streams.
--
-- KEYS:  streams
-- ARGV:
--   1. maximum entries
--   2. maximum bytes; the entry that exceeds them is the last one
--   then for each stream the id after which to read
--
-- Reply: {server time (ms), 1 if there may be more entries, else 0; then per entry: index of its stream in KEYS, id, fields}
local time = redis.call('TIME')
local entries_left, bytes_left = tonumber(ARGV[1]), tonumber(ARGV[2])
local reply = { time[1] * 1000 + math.floor(time[2] / 1000), 0 }
for place, key in ipairs(KEYS) do
  local after = ARGV[place + 2]
  while true do
    if entries_left <= 0 or bytes_left <= 0 then
      reply[2] = 1
      return reply
    end
    -- Reads one entry at a time, because the size of the next entry is unknown.
    local entry = redis.call('XRANGE', key, '(' .. after, '+', 'COUNT', 1)[1]
    if not entry then
      break
    end
    after = entry[1]
    entries_left = entries_left - 1
    for _, field in ipairs(entry[2]) do
      bytes_left = bytes_left - #field
    end
    reply[#reply + 1] = place
    reply[#reply + 1] = entry[1]
    reply[#reply + 1] = entry[2]
  end
end
return reply
