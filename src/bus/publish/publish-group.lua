-- Publishes groups that are more than a single event: they have several events, quarantine records, a cursor or the like. Included by
-- publish.lua, whose variables it uses. Defines:
--   - runGroup(head): publishes the group at `at`, moves `at` past it and returns its reply
--   - computeGroupSize(at): returns how many arguments the group at `at` has; works for every kind of group
--
-- Arguments of such a group, in this order. <parts> is the sum of the flags of the parts that the group has:
--   - head: "<window ms> <slicing> <max entries> <r|d> <events> <parts>"
--   - position (flag 1): source, epoch, version, index of the cursor in KEYS. The index is 0 if the cursor is not in this call.
--     It is negative if the group commits the cursor. Then one more argument follows: ">" and the new value, or "=" to increment
--     only the version. A conflict in the group prevents the commit.
--   - quarantine (flag 2): index of the budget in KEYS; channel; digest of the delivery; its method and headers (JSON); its
--     body; "<items> <bytes> <held> <redriven>". The last three may be empty.
--     - <bytes> replaces the organization limit of ARGV[2].
--     - <held> is the hash of the route key for which an intake holds the items.
--     - <redriven> is the id of the record whose redrive failed.
--   - quarantine, per item: id for a new record; "all" or "newest"; "<item>.<reason>[.<held>]"; reason; record (JSON)
--   - release (flag 4): index of the budget in KEYS, number of records, their ids. A conflict in the group prevents the release.
--   - signed bytes (flag 8): index of the channel's memory in KEYS; identity and digest as one string. If the group has no events,
--     the reply only says whether the delivery is a replay.
--   - replay (flag 16): no arguments. The delivery is a known replay, so the script publishes no new event.
--   - events, per event: number of its template; identity and digest as one string, or ""; the strings of the entry
local function reject(code, text)
  error({ rejection = '-' .. code .. ' ' .. text })
end

-- @include ../sources/source-position.lua

-- Creates the quarantine store's functions on first use, because creating them costs time in every call.
local openQuarantine
local function openStore(budget)
  if not openQuarantine then
    -- @include ../quarantine/quarantine-store.lua
    openQuarantine = openQuarantineStore
  end
  return openQuarantine(budget)
end

local function readQuarantine()
  local newestItems, newestBytes, channelBytes, organizationBytes, keepMs, reasons =
    match(ARGV[2], '(%d+) (%d+) (%d+) (%d+) (%d+) (.*)')
  local items, organizationLimit, held, redriven = match(ARGV[at + 5], '^(%d+) (%d*) (%S*) (.*)$')
  local write = {
    store = openStore(KEYS[tonumber(ARGV[at])]),
    channel = ARGV[at + 1],
    delivery = ARGV[at + 1] .. ':' .. ARGV[at + 2],
    meta = ARGV[at + 3],
    body = ARGV[at + 4],
    held = held ~= '' and held,
    redriven = redriven ~= '' and redriven,
    items = {},
    limits = {
      newestItems = tonumber(newestItems),
      newestBytes = tonumber(newestBytes),
      channelBytes = tonumber(channelBytes),
      organizationBytes = tonumber(organizationLimit) or tonumber(organizationBytes),
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

local heads = {}
local function openHead(text)
  local policyText, events, parts = match(text, '^(%d+ %a %d+ %a) (%d+) (%d+)$')
  local head = {
    policy = policies[policyText] or openPolicy(policyText),
    events = tonumber(events),
    parts = tonumber(parts),
  }
  heads[text] = head
  return head
end

-- Reads template texts directly, so that it also works if opening a template failed.
local function computeGroupSize(first)
  local function computeEventSize(place)
    local memory, count = match(ARGV[FIRST_TEMPLATE - 1 + ARGV[place]], '^%d+ %a %d+ %a %d+ (%d+) (%d+)')
    return 2 + (memory == '0' and 0 or 1) + (count == '0' and 3 or tonumber(count))
  end
  if not find(ARGV[first], ' ', 1, true) then
    return computeEventSize(first)
  end
  local head, place = heads[ARGV[first]] or openHead(ARGV[first]), first + 1
  if head.parts % 2 == 1 then
    place = place + (tonumber(ARGV[place + 3]) < 0 and 5 or 4)
  end
  if floor(head.parts / 2) % 2 == 1 then
    place = place + 6 + 5 * tonumber(match(ARGV[place + 5], '^%d+'))
  end
  if floor(head.parts / 4) % 2 == 1 then
    place = place + 2 + tonumber(ARGV[place + 1])
  end
  if floor(head.parts / 8) % 2 == 1 then
    place = place + 2
  end
  for _ = 1, head.events do
    place = place + computeEventSize(place)
  end
  return place - first
end

local function runGroup(firstArgument)
  local head = heads[firstArgument] or openHead(firstArgument)
  local policy, events, parts = head.policy, head.events, head.parts
  at = at + 1
  local position, quarantine, release, memory, mark
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
    local place = tonumber(ARGV[at])
    memory, mark = topics[place] or openMemory(place, KEYS[place], KEYS[place]), ARGV[at + 1]
    at = at + 2
  end

  local first, eventTemplates = at, {}
  for n = 1, events do
    local template = templates[ARGV[at]] or openTemplate(ARGV[at])
    eventTemplates[n] = template
    at = at + 2 + template.size
    if position then
      checkEpoch(template.topic, position)
    end
  end
  if quarantine then
    local full = quarantine.store.check(quarantine)
    if full then
      reject('FULL', 'the quarantine of the ' .. full .. ' is full')
    end
  end

  -- All checks have passed. The script writes from here on.
  local replayed = parts >= 16 or mark and isReplay(memory, policy, mark)
  local answers, conflicts = {}, false
  local place = first
  for n = 1, events do
    local template = eventTemplates[n]
    if position then
      stampEpoch(template.topic, position)
    end
    local answer = publish(template, ARGV[place + 1], place + 2, replayed)
    conflicts = conflicts or answer == '!' or answer == '?'
    answers[n] = answer
    place = place + 2 + template.size
  end
  if quarantine then
    quarantine.store.write(quarantine, answers)
    wrote = true
  end
  if release and not conflicts then
    wrote = true
    for n = release + 2, release + 1 + tonumber(ARGV[release + 1]) do
      openStore(KEYS[tonumber(ARGV[release])]).drop(ARGV[n])
    end
  end
  if position and position.commits and not conflicts then
    commitCursor(position)
    wrote = true
  end
  if mark and events == 0 then
    return replayed and '?' or ''
  end
  return table.concat(answers, ' ')
end
