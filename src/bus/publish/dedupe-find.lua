#!lua flags=no-writes
-- Says whether ids of a topic are known, as publish.lua would; writes nothing.
-- KEYS: topic
-- ARGV: window (ms), slicing; then, per event, identity (22) and digest (11)
-- Reply: per event "" (unknown), "=<entry id>" (same data) or "!<entry id>" (other data)
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
local view = viewOf(topic, policy)
local answers = {}
for n = 3, #ARGV do
  local digest, entryId = recall(view, policy, sub(ARGV[n], 1, IDENTITY))
  answers[#answers + 1] = not entryId and '' or (digest == sub(ARGV[n], IDENTITY + 1) and '=' or '!') .. entryId
end
return answers
