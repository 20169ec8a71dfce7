#!lua flags=no-writes
-- Lists the entry ids of a range, without returning the entries' contents.
--
-- KEYS:  stream
-- ARGV:  from, to (in XRANGE syntax), maximum number of ids, maximum bytes to scan, 1 to list the newest first
--
-- Reply: {1 if the range ends with these ids, 0 if there are more; then the ids}
local newest_first = ARGV[5] == '1'
local from, to, limit, bytes_left = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local reply = {1}
while true do
  -- Reads one entry at a time, because a reply with many would hold all their payloads in memory.
  local found
  if newest_first then
    found = redis.call('XREVRANGE', KEYS[1], to, from, 'COUNT', 1)
  else
    found = redis.call('XRANGE', KEYS[1], from, to, 'COUNT', 1)
  end
  local entry = found[1]
  if not entry then return reply end
  if #reply > limit or bytes_left <= 0 then
    reply[1] = 0
    return reply
  end
  reply[#reply + 1] = entry[1]
  for _, field in ipairs(entry[2]) do bytes_left = bytes_left - #field end
  if newest_first then
    to = '(' .. entry[1]
  else
    from = '(' .. entry[1]
  end
end
