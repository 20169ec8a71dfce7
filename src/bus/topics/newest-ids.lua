#!lua flags=no-writes
-- Returns the newest entry id and the number of entries of several streams, without the entries' contents.
--
-- KEYS:  streams
-- ARGV:  from, maximum bytes to scan, then the end of the range of each stream (in XRANGE syntax)
--
-- Reply: newest id in the range or an empty text, and number of entries, of each stream.
-- The reply ends early if the entries are large.
local bytes_left = tonumber(ARGV[2])
local reply = {}
for n, key in ipairs(KEYS) do
  local entry = redis.call('XREVRANGE', key, ARGV[n + 2], ARGV[1], 'COUNT', 1)[1]
  reply[#reply + 1] = entry and entry[1] or ''
  reply[#reply + 1] = redis.call('XLEN', key)
  if entry then
    for _, field in ipairs(entry[2]) do bytes_left = bytes_left - #field end
    if bytes_left <= 0 then return reply end
  end
end
return reply
