#!lua
-- Appends the events of one or several deliveries ("groups"), each event at most once within its dedupe window, with their
-- quarantine records and, for pull sources, the cursor. A script is not rolled back, so each group is checked whole before its
-- first write. The shebang makes Redis (from 7.0 on) answer OOM, READONLY and MISCONF before the script begins.
--
-- KEYS    what the arguments refer to by its place, from 1: topics, cursors (inlet:{c.<channel>}:cursor), quarantine budgets
--         (inlet:{q.<organization>}:b), memories of signed bytes (inlet:{b.<channel>}:). Companions are derived, all with the tag of their owner: {<topic>}:e (epochs, dedupe
--         slicings in use), {<topic>}:[<slicing>]<slice>[.<bucket>] (dedupe), inlet:{q.<organization>}:… (quarantine-store.lua).
-- ARGV[1] "1" where the call must write even if it appends nothing, so that a following WAIT covers what it found
-- ARGV[2] "<newest items> <newest bytes> <channel bytes> <organization bytes> <keep ms> <reasons>": the quarantine's limits
-- ARGV[3] number of forms, which follow it. A form is what many events of a call have in common, sent once:
--         "<window ms> <slicing> <max entries> <r|d> <place of the topic> <place of the memory of signed bytes, or 0> <count>": r reports a
--         known id with other data, d calls it a duplicate; the entry is so many strings, name and value in turn. Where count is 0, lines
--         with source, type and datacontenttype follow, and the entry is the values of id, time and data (specversion is 1.0)
-- then the groups. Most are one event and no more than its signed bytes: they begin with the number of its form:
--   form's number; identity (22) and digest (11) of the event, or ""; where the form has a memory, identity (22) of what was signed and
--   digest (11) of the ids and types that came of it; the strings of the entry
-- publish-group.lua describes the others.
--
-- Reply: one string per group. Its words are, per event, "<entry id>" (published), "=<entry id>" (duplicate), "!" (conflict) or
-- "?" (a replay: signed bytes that are remembered with another digest), then, per quarantined item, its record's id. Or "-<code> <text>",
-- the group refused: EPOCH, CURSOR (a stale source), FULL (a quarantine budget), else an error of Redis; only after an error of Redis
-- may a part of the group be written.
--
-- Calls hold dozens of events, and Redis does nothing else meanwhile: what runs for each event makes no table, and no string but
-- those that Redis is given; functions that few calls need are made by those, as making one costs time in each.

local call, ARGV, KEYS = redis.call, ARGV, KEYS
local sub, find, format, match, floor = string.sub, string.find, string.format, string.match, math.floor
local FIRST_FORM = 4

local time = call('TIME')
local now = time[1] * 1000 + floor(time[2] / 1000)
local wrote = false
local at, start = FIRST_FORM + ARGV[3], 0

local topics, policies, forms, appendedTo = {}, {}, {}, {}

local function openPolicy(text)
  local window, slicing, maxEntries, conflict = match(text, '^(%d+) (%a) (%d+) (%a)')
  local policy = {
    window = tonumber(window),
    slicing = slicing,
    maxEntries = maxEntries,
    reports = conflict == 'r',
    text = text,
  }
  policies[text] = policy
  return policy
end

-- A topic, or the signed bytes of a channel: what has a memory.
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

local function openForm(number)
  local policyText, topic, memory, count, common =
    match(ARGV[FIRST_FORM - 1 + number], '^(%d+ %a %d+ %a) (%d+) (%d+) (%d+)(.*)$')
  topic, memory, count = tonumber(topic), tonumber(memory), tonumber(count)
  local form = {
    policy = policies[policyText] or openPolicy(policyText),
    topic = topics[topic] or openTopic(topic),
    count = count,
    size = count == 0 and 3 or count,
  }
  form.key = form.topic.key
  if memory > 0 then
    form.signed = topics[memory] or openMemory(memory, KEYS[memory], KEYS[memory])
  end
  if count == 0 then
    form.source, form.type, form.contentType = match(common, '^\n([^\n]*)\n([^\n]*)\n(.*)$')
  end
  forms[number] = form
  return form
end

-- @include ./dedupe.lua

-- Answers the entry's id. All entries of a call on a topic have the time of the first one: the ids of the others are known before.
local function append(form, first)
  local topic, count = form.topic, form.count
  local id, entryId = topic.id or '*', nil
  if count == 0 then
    entryId = call('XADD', form.key, id, 'specversion', '1.0', 'id', ARGV[first], 'source', form.source, 'type', form.type,
      'time', ARGV[first + 1], 'datacontenttype', form.contentType, 'data', ARGV[first + 2])
  else
    entryId = call('XADD', form.key, id, unpack(ARGV, first, first + count - 1))
  end
  if topic.id then
    topic.sequence = topic.sequence + 1
  else
    local dash = find(entryId, '-', 1, true)
    topic.id = sub(entryId, 1, dash) .. '*'
    topic.ms, topic.sequence = tonumber(sub(entryId, 1, dash - 1)), tonumber(sub(entryId, dash + 1))
    topic.maxEntries = form.policy.maxEntries
    appendedTo[#appendedTo + 1] = topic
  end
  wrote = true
  return entryId
end

-- Whether signed bytes came before under other ids or types; else they are remembered.
local function isReplay(memory, policy, mark)
  local digest = sub(mark, IDENTITY + 1)
  local known = recallOrClaim(memory, policy, sub(mark, 1, IDENTITY), digest, now, 0)
  claimedIn, wrote = nil, wrote or not known
  return known and known ~= digest
end

-- Answers the word for an event whose entry begins at `first`.
local function publish(form, mark, first, replayed)
  if mark == '' then
    return replayed and '?' or append(form, first)
  end
  local policy, topic = form.policy, form.topic
  local identity, digest = sub(mark, 1, IDENTITY), sub(mark, IDENTITY + 1)
  local ms, sequence, knownDigest, knownId = now, 0, nil, nil
  if replayed then
    knownDigest, knownId = recall(topic.views[policy.text] or viewOf(topic, policy), policy, identity)
  else
    if topic.id then
      ms, sequence = topic.ms, topic.sequence + 1
    end
    knownDigest, knownId = recallOrClaim(topic, policy, identity, digest, ms, sequence)
  end
  if knownId then
    return policy.reports and knownDigest ~= digest and '!' or '=' .. knownId
  elseif replayed then
    return '?'
  end
  local entryId = append(form, first)
  if topic.ms ~= ms or topic.sequence ~= sequence then
    store(claimedIn, identity, digest, topic.ms, topic.sequence)
  end
  claimedIn = nil
  return entryId
end

-- A group that is one event and no more than its signed bytes.
local function runOne(form)
  local mark, first, replayed = ARGV[at + 1], at + 2, false
  if form.signed then
    replayed = isReplay(form.signed, form.policy, ARGV[first])
    first = first + 1
  end
  at = first + form.size
  return publish(form, mark, first, replayed)
end

local groups
local function otherGroups()
  if not groups then
    -- @include ./publish-group.lua
    groups = { run = runGroup, sizeOf = sizeOfGroup }
  end
  return groups
end

local replies = {}
local function runGroups()
  local last = #ARGV
  while at <= last do
    start = at
    local opening = ARGV[at]
    local form = forms[opening]
    if not form and not find(opening, ' ', 1, true) then
      form = openForm(opening)
    end
    replies[#replies + 1] = form and runOne(form) or otherGroups().run(opening)
  end
end

while at <= #ARGV do
  local done, problem = pcall(runGroups)
  if not done then
    unclaim()
    at = start + otherGroups().sizeOf(start)
    if type(problem) == 'table' then
      problem = problem.refused or '-REDIS ' .. (problem.err or 'unknown')
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
