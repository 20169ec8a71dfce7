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
-- then, for each group:
--   head     "<window ms> <slicing> <max entries> <r|d> <events> <parts>": r reports a known id with other data, d calls it a
--            duplicate; parts: 1 (a position follows) + 2 (quarantine follows) + 4 (a release follows) + 8 (signed bytes follow)
--            + 16 (the delivery is a replay: nothing of it is published)
--   position source, epoch, version, place of the cursor in KEYS (0: not in this call; negative: commit it); where it is committed
--            also ">" and the new value, or "=" where only the version moves. It stays where an event of the group conflicts
--   quarantine  place of the budget in KEYS, channel, digest of the delivery, its method and headers (JSON), its body, number of items and,
--            after a space, the bytes that its organization may hold in the place of those in ARGV[2];
--            per item: id for a new record, "all" or "newest", "<item>.<reason>", reason, the record (JSON)
--   release  place of the budget in KEYS, number of records, their ids; they stay where an event of the group conflicts
--   signed bytes  place of the channel's memory; identity (22) of what was signed and digest (11) of the ids and types that came of it.
--            Remembered with another digest, the delivery is a replay. Without events, that alone is answered
--   events   per event: "<topic's place> <count>"; identity (22) and digest (11), or ""; then an entry of so many strings, name and
--            value in turn. Where count is 0, lines with source, type and datacontenttype follow it, and the entry is the values of
--            id, time and data (specversion is 1.0)
--
-- Reply: one string per group. Its words are, per event, "<entry id>" (published), "=<entry id>" (duplicate), "!" (conflict) or
-- "?" (replay), then, per quarantined item, its record's id. Or "-<code> <text>", the group refused: EPOCH, CURSOR (a stale source), FULL (a
-- quarantine budget), else an error of Redis; only after an error of Redis may a part of the group be written.

local call, ARGV, KEYS = redis.call, ARGV, KEYS
local sub, find, format, floor = string.sub, string.find, string.format, math.floor

local time = call('TIME')
local now = time[1] * 1000 + floor(time[2] / 1000)
local wrote = false
local at = 3

-- Texts that are alike in many groups and events are read once a call, as numbers are slow to read.
local heads, policies, shapes, topics = {}, {}, {}, {}

local function openHead(text)
  local policyText, window, slicing, maxEntries, conflict, events, parts =
    string.match(text, '^((%d+) (%a) (%d+) (%a)) (%d+) (%d+)$')
  local policy = policies[policyText]
  if not policy then
    policy = { window = tonumber(window), slicing = slicing, maxEntries = maxEntries, report = conflict == 'r', text = policyText }
    policies[policyText] = policy
  end
  local head = { policy = policy, events = tonumber(events), parts = tonumber(parts) }
  heads[text] = head
  return head
end

local function openMemory(place, key, prefix)
  local memory = { key = key, prefix = prefix, views = {}, slices = {} }
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

-- The topic of an event, the number of strings of its entry, and that of all its arguments.
local function openShape(text)
  local place, count = string.match(text, '^(%d+) (%d+)')
  place, count = tonumber(place), tonumber(count)
  local shape = { topic = topics[place] or openTopic(place), count = count, size = 2 + (count == 0 and 3 or count) }
  if count == 0 then
    shape.source, shape.type, shape.contentType = string.match(text, '\n([^\n]*)\n([^\n]*)\n(.*)$')
  end
  shapes[text] = shape
  return shape
end

-- @include ./dedupe.lua

local function refuse(code, text)
  error({ refused = '-' .. code .. ' ' .. text })
end

-- @include ../sources/source-position.lua

-- Signed bytes, as a group tells of them. A replay has them under other ids or types than before.
local function readSignedBytes(policy)
  local place, mark = tonumber(ARGV[at]), ARGV[at + 1]
  at = at + 2
  local memory = topics[place] or openMemory(place, KEYS[place], KEYS[place])
  local bytes = { memory = memory, identity = sub(mark, 1, IDENTITY), digest = sub(mark, IDENTITY + 1) }
  bytes.known = recall(memory.views[policy.text] or viewOf(memory, policy), policy, bytes.identity)
  return bytes
end

local function rememberIn(memory, policy, identity, digest, entryId)
  local view = memory.views[policy.text]
  if view.noteOwn or view.noteDefault then
    noteSlicings(memory, policy, view)
  end
  remember(view, identity, digest, entryId)
end

local function append(shape, policy, first)
  local key, count = shape.topic.key, shape.count
  if count == 0 then
    return call('XADD', key, 'MAXLEN', '~', policy.maxEntries, '*', 'specversion', '1.0', 'id', ARGV[first],
      'source', shape.source, 'type', shape.type, 'time', ARGV[first + 1],
      'datacontenttype', shape.contentType, 'data', ARGV[first + 2])
  end
  return call('XADD', key, 'MAXLEN', '~', policy.maxEntries, '*', unpack(ARGV, first, first + count - 1))
end

-- The quarantine store's functions are made only by calls that need them: closures cost time in each run.
local openStore
local function storeOf(budget)
  if not openStore then
    -- @include ../quarantine/quarantine-store.lua
    openStore = openQuarantineStore
  end
  return openStore(budget)
end

local function readQuarantine()
  local newestItems, newestBytes, channelBytes, organizationBytes, keepMs, reasons =
    string.match(ARGV[2], '(%d+) (%d+) (%d+) (%d+) (%d+) (.*)')
  local items, ofOrganization = string.match(ARGV[at + 5], '^(%d+) ?(%d*)$')
  local write = {
    store = storeOf(KEYS[tonumber(ARGV[at])]),
    channel = ARGV[at + 1],
    delivery = ARGV[at + 1] .. ':' .. ARGV[at + 2],
    meta = ARGV[at + 3],
    body = ARGV[at + 4],
    items = {},
    limits = {
      newestItems = tonumber(newestItems),
      newestBytes = tonumber(newestBytes),
      channelBytes = tonumber(channelBytes),
      organizationBytes = tonumber(ofOrganization) or tonumber(organizationBytes),
      keepMs = tonumber(keepMs),
      reasons = reasons,
    },
  }
  local first = at + 6
  at = first + 5 * tonumber(items)
  for n = first, at - 1, 5 do
    write.items[#write.items + 1] = {
      id = ARGV[n],
      keepsAll = ARGV[n + 1] == 'all',
      field = ARGV[n + 2],
      reason = ARGV[n + 3],
      record = ARGV[n + 4],
    }
  end
  return write
end

-- Where the group ends that begins at `start`.
local function groupEnd(start)
  local head, position = heads[ARGV[start]], start + 1
  if head.parts % 2 == 1 then
    position = position + (tonumber(ARGV[position + 3]) < 0 and 5 or 4)
  end
  if floor(head.parts / 2) % 2 == 1 then
    position = position + 6 + 5 * tonumber(ARGV[position + 5])
  end
  if floor(head.parts / 4) % 2 == 1 then
    position = position + 2 + tonumber(ARGV[position + 1])
  end
  if floor(head.parts / 8) % 2 == 1 then
    position = position + 2
  end
  for _ = 1, head.events do
    local count = tonumber(string.match(ARGV[position], ' (%d+)'))
    position = position + 2 + (count == 0 and 3 or count)
  end
  return position
end

-- The events of the group at hand, in order; their arrays serve all groups.
local eventShapes, identities, digests = {}, {}, {}

local function runGroup()
  local head = heads[ARGV[at]] or openHead(ARGV[at])
  local policy, events, parts = head.policy, head.events, head.parts
  at = at + 1
  local position, quarantine, release, signed
  local isReplay = parts >= 16
  if parts > 0 then
    if parts % 2 == 1 then
      position = readPosition()
      if position.cursor then
        checkCursor(position)
      end
    end
    if floor(parts / 2) % 2 == 1 then
      quarantine = readQuarantine()
    end
    if floor(parts / 4) % 2 == 1 then
      release = at
      at = at + 2 + tonumber(ARGV[at + 1])
    end
    if floor(parts / 8) % 2 == 1 then
      signed = readSignedBytes(policy)
      isReplay = isReplay or (signed.known and signed.known ~= signed.digest)
    end
  end

  local answers, known = {}, events > 1 and {}
  local first = at
  for n = 1, events do
    local shape, mark = shapes[ARGV[at]] or openShape(ARGV[at]), ARGV[at + 1]
    local topic = shape.topic
    eventShapes[n] = shape
    identities[n] = false
    answers[n] = false
    at = at + shape.size
    if position then
      checkEpoch(topic, position)
    end
    if mark ~= '' then
      local identity, digest = sub(mark, 1, IDENTITY), sub(mark, IDENTITY + 1)
      identities[n], digests[n] = identity, digest
      local ofTopic = known and (known[topic] or {})
      local before = known and ofTopic[identity]
      if before then
        answers[n] = (policy.report and before[1] ~= digest) and '!' or before[2]
      else
        local knownDigest, entryId = recall(topic.views[policy.text] or viewOf(topic, policy), policy, identity)
        if entryId then
          answers[n] = (policy.report and knownDigest ~= digest) and '!' or '=' .. entryId
        end
        if known then
          known[topic] = ofTopic
          ofTopic[identity] = entryId and { knownDigest, '=' .. entryId } or { digest, n }
        end
      end
    end
    if isReplay and (not answers[n] or type(answers[n]) == 'number') then
      answers[n] = '?'
    end
  end
  if quarantine then
    local full = quarantine.store.check(quarantine)
    if full then
      refuse('FULL', 'the quarantine of the ' .. full .. ' is full')
    end
  end

  if signed and not signed.known then
    rememberIn(signed.memory, policy, signed.identity, signed.digest, format('%.0f-0', now))
    wrote = true
  end
  local entry = first + 2
  for n = 1, events do
    local shape, answer = eventShapes[n], answers[n]
    local topic = shape.topic
    if position then
      stampEpoch(topic, position)
    end
    if not answer then
      local entryId = append(shape, policy, entry)
      wrote = true
      answers[n] = entryId
      if identities[n] then
        rememberIn(topic, policy, identities[n], digests[n], entryId)
      end
    elseif type(answer) == 'number' then
      -- It repeats an event that this delivery has just published.
      answers[n] = '=' .. answers[answer]
    end
    entry = entry + shape.size
  end
  if quarantine then
    quarantine.store.write(quarantine, answers)
    wrote = true
  end
  local conflicts = false
  for n = 1, (release or position) and events or 0 do
    conflicts = conflicts or answers[n] == '!' or answers[n] == '?'
  end
  if release and not conflicts then
    wrote = true
    for n = release + 2, release + 1 + tonumber(ARGV[release + 1]) do
      storeOf(KEYS[tonumber(ARGV[release])]).drop(ARGV[n])
    end
  end
  if position and position.commits and not conflicts then
    commitCursor(position)
    wrote = true
  end
  if signed and events == 0 then
    return isReplay and '?' or ''
  end
  return #answers == 1 and answers[1] or table.concat(answers, ' ')
end

local replies = {}
while at <= #ARGV do
  local start = at
  local done, answer = pcall(runGroup)
  if not done then
    at = groupEnd(start)
    if type(answer) == 'table' then
      answer = answer.refused or '-REDIS ' .. (answer.err or 'unknown')
    else
      answer = '-SCRIPT ' .. tostring(answer)
    end
  end
  replies[#replies + 1] = answer
end
if not wrote and ARGV[1] == '1' and KEYS[1] then
  local tag = string.find(KEYS[1], '{', 1, true) and KEYS[1] or '{' .. KEYS[1] .. '}'
  call('SET', tag .. ':t', '', 'PX', 1000)
end
return replies
