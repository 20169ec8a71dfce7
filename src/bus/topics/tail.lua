#!lua flags=no-writes
-- Reads on in several streams.
-- KEYS: streams
-- ARGV: most entries, most bytes (the entry that passes them is the last), then for each stream the id after which to read
-- Reply: the server's time (ms); 1 where there may be more than was read, else 0; then, per entry, the place of its stream, its id
-- and its fields
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
    -- One at a time: how large the next one is nobody knows.
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
