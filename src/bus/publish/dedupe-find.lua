#!lua flags=no-writes
-- Checks which event ids a topic already remembers, by the same rules as publish.lua. Writes no data.
--
-- KEYS:  topic
-- ARGV:  dedupe window (ms), slicing; then per event its identity (22 characters) and digest (11 characters) as one string
--
-- Reply: one string per event:
--   - ""             unknown id
--   - "=<entry id>"  known with the same data
--   - "!<entry id>"  known with other data
local call, ARGV, KEYS = redis.call, ARGV, KEYS
local sub, find, format, floor = string.sub, string.find, string.format, math.floor
local time = call('TIME')
local now = time[1] * 1000 + floor(time[2] / 1000)

-- @include ./dedupe.lua

local topic = { key = KEYS[1], prefix = '{' .. KEYS[1] .. '}:', views = {}, slices = {} }
local notes = call('HGETALL', topic.prefix .. 'e')
if notes[1] then
  topic.notes = {}
  for i = 1, #notes, 2 do
    topic.notes[notes[i]] = tonumber(notes[i + 1])
  end
end
local policy = { window = tonumber(ARGV[1]), slicing = ARGV[2], text = '' }
local view = openView(topic, policy)
local replies = {}
for n = 3, #ARGV do
  local digest, entryId = recall(view, policy, sub(ARGV[n], 1, IDENTITY))
  replies[#replies + 1] = not entryId and '' or (differs(digest, sub(ARGV[n], IDENTITY + 1)) and '!' or '=') .. entryId
end
return replies
