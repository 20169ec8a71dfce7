#!lua flags=no-writes
-- Names entries of a range without handing out what is in them.
-- KEYS: stream
-- ARGV: from, to (as XRANGE takes them), most ids, most bytes looked at, 1 where the newest come first
-- Reply: 1 where the range ends with these ids, 0 where it goes on; then the ids
local newest_first = ARGV[5] == '1'
local from, to, limit, bytes_left = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local reply = {1}
while true do
  -- One at a time: a reply of many would be as large as all their payloads.
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
