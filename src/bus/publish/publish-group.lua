-- Groups of several events, or with more than events; a fragment of publish.lua, whose variables it uses. It defines runGroup, which
-- reads the group at `at`, moves `at` behind it and answers its words, and sizeOfGroup, of any group.
--
-- Such a group begins with a head and goes on with its parts:
--   head     "<window ms> <slicing> <max entries> <r|d> <events> <parts>"; parts: 1 (a position follows) + 2 (quarantine follows)
--            + 4 (a release follows) + 8 (signed bytes follow) + 16 (the delivery is a replay: nothing of it is published)
--   position source, epoch, version, place of the cursor in KEYS (0: not in this call; negative: commit it); where it is committed
--            also ">" and the new value, or "=" where only the version moves. It stays where an event of the group conflicts
--   quarantine  place of the budget in KEYS, channel, digest of the delivery, its method and headers (JSON), its body, number of items and,
--            after a space, the bytes that its organization may hold in the place of those in ARGV[2];
--            per item: id for a new record, "all" or "newest", "<item>.<reason>", reason, the record (JSON)
--   release  place of the budget in KEYS, number of records, their ids; they stay where an event of the group conflicts
--   signed bytes  place of the channel's memory; identity and digest. Without events, whether they are a replay is all that is answered
--   events   per event: its form's number; identity and digest, or ""; the strings of the entry
local function refuse(code, text)
  error({ refused = '-' .. code .. ' ' .. text })
end

-- @include ../sources/source-position.lua

-- The quarantine store's functions are made only by calls that need them.
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
    match(ARGV[2], '(%d+) (%d+) (%d+) (%d+) (%d+) (.*)')
  local items, ofOrganization = match(ARGV[at + 5], '^(%d+) ?(%d*)$')
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

-- Also of a group whose form cannot be opened.
local function sizeOfGroup(first)
  local function sizeOfEvent(place)
    local memory, count = match(ARGV[FIRST_FORM - 1 + ARGV[place]], '^%d+ %a %d+ %a %d+ (%d+) (%d+)')
    return 2 + (memory == '0' and 0 or 1) + (count == '0' and 3 or tonumber(count))
  end
  if not find(ARGV[first], ' ', 1, true) then
    return sizeOfEvent(first)
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
    place = place + sizeOfEvent(place)
  end
  return place - first
end

local function runGroup(opening)
  local head = heads[opening] or openHead(opening)
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

  local first, eventForms = at, {}
  for n = 1, events do
    local form = forms[ARGV[at]] or openForm(ARGV[at])
    eventForms[n] = form
    at = at + 2 + form.size
    if position then
      checkEpoch(form.topic, position)
    end
  end
  if quarantine then
    local full = quarantine.store.check(quarantine)
    if full then
      refuse('FULL', 'the quarantine of the ' .. full .. ' is full')
    end
  end

  -- From here on it writes.
  local replayed = parts >= 16 or mark and isReplay(memory, policy, mark)
  local answers, conflicts = {}, false
  local place = first
  for n = 1, events do
    local form = eventForms[n]
    if position then
      stampEpoch(form.topic, position)
    end
    local answer = publish(form, ARGV[place + 1], place + 2, replayed)
    conflicts = conflicts or answer == '!' or answer == '?'
    answers[n] = answer
    place = place + 2 + form.size
  end
  if quarantine then
    quarantine.store.write(quarantine, answers)
    wrote = true
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
  if mark and events == 0 then
    return replayed and '?' or ''
  end
  return table.concat(answers, ' ')
end
