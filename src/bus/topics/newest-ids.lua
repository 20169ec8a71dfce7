#!lua flags=no-writes
-- Returns the newest entry id and the number of entries of several streams, without the entries' contents.
--
-- KEYS:  streams
-- ARGV:  from, maximum bytes to scan, then the end of the range of each stream (in XRANGE syntax)
--
-- Reply: for each stream the newest id in the range or an empty text, the bytes of this entry, and the number of all entries.
-- The reply ends early if the entries are large.
local bytes_left = tonumber(ARGV[2])
local reply = {}
for n, key in ipairs(KEYS) do
  local entry = redis.call('XREVRANGE', key, ARGV[n + 2], ARGV[1], 'COUNT', 1)[1]
  local bytes = 0
  if entry then
    for _, field in ipairs(entry[2]) do bytes = bytes + #field end
  end
  reply[#reply + 1] = entry and entry[1] or ''
  reply[#reply + 1] = bytes
  reply[#reply + 1] = redis.call('XLEN', key)
  bytes_left = bytes_left - bytes
  if bytes_left <= 0 then return reply end
end
return reply
