#!lua flags=no-writes
-- Counts the entries that were appended to a stream within a period until now.
--
-- KEYS:  stream
-- ARGV:  length of the period (ms), maximum number of entries to visit, maximum bytes to visit
--
-- Reply: {time of the last append (ms), or 0 if there was none; number of counted entries; 1 if there may have been more, else 0}
if redis.call('EXISTS', KEYS[1]) == 0 then return {0, 0, 0} end
local facts = {}
local info = redis.call('XINFO', 'STREAM', KEYS[1])
for i = 1, #info, 2 do
  facts[info[i]] = info[i + 1]
end

local function time_of(id)
  return tonumber(string.match(id, '^(%d+)'))
end

local time = redis.call('TIME')
local since = time[1] * 1000 + math.floor(time[2] / 1000) - tonumber(ARGV[1])
local last = time_of(facts['last-generated-id'])
local first = facts['first-entry']
if last < since then return {last, 0, 0} end
-- If all retained entries are in the period, their number is known. Removed entries may have been in the period too.
if not first or time_of(first[1]) >= since then
  local removed = facts['entries-added'] - facts['length']
  return {last, facts['length'], removed > 0 and 1 or 0}
end

local count, entries_left, bytes_left = 0, tonumber(ARGV[2]), tonumber(ARGV[3])
local to = '+'
while true do
  -- Reads one entry at a time, because a reply with many would hold all their payloads in memory.
  local entry = redis.call('XREVRANGE', KEYS[1], to, since, 'COUNT', 1)[1]
  if not entry then return {last, count, 0} end
  if entries_left <= 0 or bytes_left <= 0 then return {last, count, 1} end
  count = count + 1
  entries_left = entries_left - 1
  for _, field in ipairs(entry[2]) do bytes_left = bytes_left - #field end
  to = '(' .. entry[1]
end
