#!lua
-- Appends the events of one or more groups to their topics, each event at most once within its dedupe window. A group is one
-- delivery or a part of it. It can also write quarantine records and, for a pull source, commit the cursor.
--
-- Redis does not roll back a script, so each group is checked completely before its first write. Because of the `#!lua` line,
-- Redis (from 7.0 on) rejects the whole call with OOM, READONLY or MISCONF before the script starts.
--
-- KEYS: every key that an argument refers to by its index, from 1:
--   - topics
--   - cursors               inlet:{c.<channel>}:cursor
--   - quarantine budgets    inlet:{q.<organization>}:b
--   - signed-bytes memories inlet:{b.<channel>}:
--
-- The script derives related keys, always with the same hash tag:
--   - {<topic>}:e                              epochs and dedupe slicings in use
--   - {<topic>}:[<slicing>]<slice>[.<bucket>]  dedupe (dedupe.lua)
--   - inlet:{q.<organization>}:...             quarantine (quarantine-store.lua)
--
-- ARGV:
--   1. "1" if the call must write even if it appends no event, so that a following WAIT also covers duplicates; else "0"
--   2. quarantine limits: "<newest items> <newest bytes> <channel bytes> <organization bytes> <keep ms> <reasons>"
--   3. number of templates
--   then the templates, one argument each, and the groups.
--
-- A template holds the values that many events of the call share, so that they are sent once:
--   "<window ms> <slicing> <max entries> <r|d> <topic> <memory> <count>"
--   - <r|d>: r reports a known id with other data as a conflict; d reports it as a duplicate
--   - <topic>: index of the topic in KEYS
--   - <memory>: index of the signed-bytes memory in KEYS, or 0
--   - <count>: number of strings in the entry; names and values alternate. With 0, the template has three more lines: source,
--     type, datacontenttype. Then an event sends only the values of id, time and data. specversion is 1.0.
--
-- Most groups are a single event, optionally with signed bytes:
--   - template number
--   - identity (22 characters) and digest (11) of the event as one string, or "" to skip deduplication
--   - only with a memory: identity (22) of the signed bytes, and digest (11) of the ids and types derived from them
--   - the strings of the entry
--
-- A group that begins with a text containing spaces is described in publish-group.lua.
--
-- Reply: one string per group. If the group was rejected: "-<code> <text>", with one of these codes:
--   - EPOCH, CURSOR: the pull source is stale
--   - FULL: a quarantine budget is used up
--   - REDIS, SCRIPT: an error. Only then may a part of the group already be written.
--
-- Otherwise words separated by spaces. The first ones are the results of the events:
--   - "<entry id>": published
--   - "=<entry id>": duplicate of that entry
--   - "!": conflict, the id is known with other data
--   - "?": replay, the signed bytes are known with another digest
--
-- The remaining words are the record ids of the quarantined items.
--
-- Performance: a call holds dozens of events, and Redis serves no other client meanwhile. Code that runs per event creates no
-- tables, and no strings except arguments of Redis commands. Rarely needed functions are created on first use.

local call, ARGV, KEYS = redis.call, ARGV, KEYS
local sub, find, format, match, floor = string.sub, string.find, string.format, string.match, math.floor
local FIRST_TEMPLATE = 4

local time = call('TIME')
local now = time[1] * 1000 + floor(time[2] / 1000)
local wrote = false
local at, start = FIRST_TEMPLATE + ARGV[3], 0

local topics, policies, templates, appendedTo = {}, {}, {}, {}

local function openPolicy(text)
  local window, slicing, maxEntries, conflict = match(text, '^(%d+) (%a) (%d+) (%a)')
  local policy = {
    window = tonumber(window),
    slicing = slicing,
    maxEntries = maxEntries,
    reportsConflicts = conflict == 'r',
    text = text,
  }
  policies[text] = policy
  return policy
end

-- Opens the dedupe memory of a topic or of a channel's signed bytes.
local function openMemory(place, key, prefix)
  local memory = { key = key, prefix = prefix, views = {}, slices = {}, notes = nil, id = nil, ms = nil, sequence = nil }
  local notes = call('HGETALL', prefix .. 'e')
  if notes[1] then
    memory.notes = {}
    for i = 1, #notes, 2 do
      memory.notes[notes[i]] = tonumber(notes[i + 1])
    end
  end
  topics[place] = memory
  return memory
end

local function openTopic(place)
  local key = KEYS[place]
  local kind = call('TYPE', key).ok
  if kind ~= 'stream' and kind ~= 'none' then
    error({ err = 'WRONGTYPE ' .. key .. ' is a ' .. kind })
  end
  return openMemory(place, key, '{' .. key .. '}:')
end

local function openTemplate(number)
  local policyText, topic, memory, count, common =
    match(ARGV[FIRST_TEMPLATE - 1 + number], '^(%d+ %a %d+ %a) (%d+) (%d+) (%d+)(.*)$')
  topic, memory, count = tonumber(topic), tonumber(memory), tonumber(count)
  local template = {
    policy = policies[policyText] or openPolicy(policyText),
    topic = topics[topic] or openTopic(topic),
    count = count,
    size = count == 0 and 3 or count,
  }
  template.key = template.topic.key
  if memory > 0 then
    template.signed = topics[memory] or openMemory(memory, KEYS[memory], KEYS[memory])
  end
  if count == 0 then
    template.source, template.type, template.contentType = match(common, '^\n([^\n]*)\n([^\n]*)\n(.*)$')
  end
  templates[number] = template
  return template
end

-- @include ./dedupe.lua

-- Appends an event and returns its entry id. All entries of a call on one topic share the milliseconds of the first one,
-- so the ids of the later ones are known in advance.
local function append(template, first)
  local topic, count = template.topic, template.count
  local id, entryId = topic.id or '*', nil
  if count == 0 then
    entryId = call('XADD', template.key, id, 'specversion', '1.0', 'id', ARGV[first], 'source', template.source, 'type', template.type,
      'time', ARGV[first + 1], 'datacontenttype', template.contentType, 'data', ARGV[first + 2])
  else
    entryId = call('XADD', template.key, id, unpack(ARGV, first, first + count - 1))
  end
  if topic.id then
    topic.sequence = topic.sequence + 1
  else
    local dash = find(entryId, '-', 1, true)
    topic.id = sub(entryId, 1, dash) .. '*'
    topic.ms, topic.sequence = tonumber(sub(entryId, 1, dash - 1)), tonumber(sub(entryId, dash + 1))
    topic.maxEntries = template.policy.maxEntries
    appendedTo[#appendedTo + 1] = topic
  end
  wrote = true
  return entryId
end

-- Returns true if the signed bytes are known with other ids or types. Otherwise remembers them.
local function isReplay(memory, policy, mark)
  local digest = sub(mark, IDENTITY + 1)
  local known = recallOrClaim(memory, policy, sub(mark, 1, IDENTITY), digest, now, 0)
  claimedSlice, wrote = nil, wrote or not known
  return known and known ~= digest
end

-- Publishes the event whose strings begin at argument `first`. Returns the event's word in the reply.
local function publish(template, mark, first, replayed)
  if mark == '' then
    return replayed and '?' or append(template, first)
  end
  local policy, topic = template.policy, template.topic
  local identity, digest = sub(mark, 1, IDENTITY), sub(mark, IDENTITY + 1)
  local ms, sequence, knownDigest, knownId = now, 0, nil, nil
  if replayed then
    knownDigest, knownId = recall(topic.views[policy.text] or openView(topic, policy), policy, identity)
  else
    if topic.id then
      ms, sequence = topic.ms, topic.sequence + 1
    end
    knownDigest, knownId = recallOrClaim(topic, policy, identity, digest, ms, sequence)
  end
  if knownId then
    return policy.reportsConflicts and differs(knownDigest, digest) and '!' or '=' .. knownId
  elseif replayed then
    return '?'
  end
  local entryId = append(template, first)
  if topic.ms ~= ms or topic.sequence ~= sequence then
    store(claimedSlice, identity, digest, topic.ms, topic.sequence)
  end
  claimedSlice = nil
  return entryId
end

local function runSingleEvent(template)
  local mark, first, replayed = ARGV[at + 1], at + 2, false
  if template.signed then
    replayed = isReplay(template.signed, template.policy, ARGV[first])
    first = first + 1
  end
  at = first + template.size
  return publish(template, mark, first, replayed)
end

local groups
local function loadGroups()
  if not groups then
    -- @include ./publish-group.lua
    groups = { run = runGroup, computeSize = computeGroupSize }
  end
  return groups
end

local replies = {}
local function runGroups()
  local last = #ARGV
  while at <= last do
    start = at
    local firstArgument = ARGV[at]
    local template = templates[firstArgument]
    if not template and not find(firstArgument, ' ', 1, true) then
      template = openTemplate(firstArgument)
    end
    replies[#replies + 1] = template and runSingleEvent(template) or loadGroups().run(firstArgument)
  end
end

while at <= #ARGV do
  local done, problem = pcall(runGroups)
  if not done then
    unclaim()
    at = start + loadGroups().computeSize(start)
    if type(problem) == 'table' then
      problem = problem.rejection or '-REDIS ' .. (problem.err or 'unknown')
    else
      problem = '-SCRIPT ' .. tostring(problem)
    end
    replies[#replies + 1] = problem
  end
end
for n = 1, #appendedTo do
  call('XTRIM', appendedTo[n].key, 'MAXLEN', '~', appendedTo[n].maxEntries)
end
if not wrote and ARGV[1] == '1' and KEYS[1] then
  local tag = find(KEYS[1], '{', 1, true) and KEYS[1] or '{' .. KEYS[1] .. '}'
  call('SET', tag .. ':t', '', 'PX', 1000)
end
return replies
