#!lua flags=no-writes
-- Lists the entry ids of a range of each stream, without returning the entries' contents.
--
-- KEYS:  streams
-- ARGV:
--   1. 1 to list the newest first
--   2. maximum number of ids of all streams
--   3. maximum bytes to scan
--   then for each stream: from, to (in XRANGE syntax), maximum number of ids
--
-- Reply: for each stream {1 if the range ends with these ids, 0 if there are more; then for each entry: id, bytes}.
-- The reply ends early at the maximum number of ids or bytes. It contains at least the first stream, with at least one id if there is one.
local newest_first, ids_left, bytes_left = ARGV[1] == '1', tonumber(ARGV[2]), tonumber(ARGV[3])
local SMALL_BYTES = 4096
local MAX_AT_ONCE = 8

local function list(key, from, to, limit)
  local found = {0}
  local count, at_once = 0, 1
  while true do
    local entries
    if newest_first then
      entries = redis.call('XREVRANGE', key, to, from, 'COUNT', at_once)
    else
      entries = redis.call('XRANGE', key, from, to, 'COUNT', at_once)
    end
    local largest = 0
    for _, entry in ipairs(entries) do
      if count >= limit or (count > 0 and (ids_left <= 0 or bytes_left <= 0)) then return found end
      local bytes = 0
      for _, field in ipairs(entry[2]) do bytes = bytes + #field end
      found[#found + 1] = entry[1]
      found[#found + 1] = bytes
      count, ids_left, bytes_left, largest = count + 1, ids_left - 1, bytes_left - bytes, math.max(largest, bytes)
    end
    if #entries < at_once then
      found[1] = 1
      return found
    end
    if newest_first then
      to = '(' .. entries[at_once][1]
    else
      from = '(' .. entries[at_once][1]
    end
    -- Reads only a few entries at a time, and only one after a large one, because their payloads are in memory together.
    at_once = largest <= SMALL_BYTES and math.min(MAX_AT_ONCE, limit - count + 1) or 1
  end
end

local reply = {}
for n, key in ipairs(KEYS) do
  if n > 1 and (ids_left <= 0 or bytes_left <= 0) then return reply end
  reply[n] = list(key, ARGV[3 * n + 1], ARGV[3 * n + 2], tonumber(ARGV[3 * n + 3]))
end
return reply
