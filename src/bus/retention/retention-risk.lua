#!lua flags=no-writes
-- Reports for each consumer group of a topic how far behind it is, and whether retention may soon trim entries that it has not
-- handled.
--
-- KEYS:  stream
-- ARGV:
--   1. maximum age (ms)
--   2. maximum entries
--   3. maximum bytes
--   4. fraction of these limits above which a group is at risk
--   5. samples for MEMORY USAGE
--   6. first group to read (from 1)
--   7. maximum number of groups
--
-- Reply: {index of the next group to read, or 0; then seven values per group}:
--   - name
--   - 1 if at risk, else 0
--   - undelivered entries
--   - age of the oldest undelivered entry (ms)
--   - age of the oldest undelivered or pending entry (ms)
--   - pending entries
--   - dead letters of its readers
--
-- Redis does not know the position of an entry in a stream. If the oldest unhandled entry is the first undelivered one, the group's
-- lag is the number of entries from there to the end. Otherwise, or if the lag is unknown, that number is estimated from entry times.
local topic = KEYS[1]
local max_age, max_entries, max_bytes, part, samples, first, most =
  tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7])
if redis.call('EXISTS', topic) == 0 then
  return { 0 }
end
local length = redis.call('XLEN', topic)
local function ms_of(id)
  return tonumber(string.match(id, '^%d+'))
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local head, tail, bytes, is_filling
if length > 0 then
  head = redis.call('XRANGE', topic, '-', '+', 'COUNT', 1)[1][1]
  tail = redis.call('XREVRANGE', topic, '+', '-', 'COUNT', 1)[1][1]
  bytes = redis.call('MEMORY', 'USAGE', topic, 'SAMPLES', samples)
  is_filling = length > part * max_entries or bytes > part * max_bytes
end

-- Estimates the fraction of the stream that lies between entry `id` and the end.
local function share_from(id)
  local span = ms_of(tail) - ms_of(head)
  return span > 0 and (ms_of(tail) - ms_of(id)) / span or 1
end

local function older(a, b)
  local a_ms, b_ms = ms_of(a), ms_of(b)
  if a_ms ~= b_ms then
    return a_ms < b_ms
  end
  return tonumber(string.match(a, '%d+$')) < tonumber(string.match(b, '%d+$'))
end

-- Returns the oldest undelivered entry and the oldest unhandled entry (undelivered or pending).
local function oldest_of(group)
  if length == 0 then
    return
  end
  local undelivered = redis.call('XRANGE', topic, '(' .. group['last-delivered-id'], '+', 'COUNT', 1)[1]
  undelivered = undelivered and undelivered[1]
  local unread = undelivered
  if group.pending > 0 then
    local pending = redis.call('XPENDING', topic, group.name)[2]
    -- Skips a pending entry that was already trimmed, because it cannot be saved anymore.
    local left = redis.call('XRANGE', topic, pending, '+', 'COUNT', 1)[1]
    if left and (not unread or older(left[1], unread)) then
      unread = left[1]
    end
  end
  return undelivered, unread
end

local function is_at_risk(group, undelivered, unread)
  if not unread then
    return false
  end
  if now - ms_of(unread) > part * max_age then
    return true
  end
  if not is_filling then
    return false
  end
  local behind = math.max(group.lag and group.lag + group.pending or 0, share_from(unread) * length)
  if undelivered and unread == undelivered and group.lag then
    behind = group.lag
  end
  behind = math.min(behind, length)
  return behind > part * max_entries or bytes * behind / length > part * max_bytes
end

local function age_of(id)
  return id and math.max(0, now - ms_of(id)) or 0
end

local reply = { 0 }
local groups = redis.call('XINFO', 'GROUPS', topic)
for i = first, #groups do
  if i >= first + most then
    reply[1] = i
    break
  end
  local group = {}
  for j = 1, #groups[i], 2 do
    group[groups[i][j]] = groups[i][j + 1]
  end
  local undelivered, unread = oldest_of(group)
  local lag = 0
  if undelivered then
    lag = group.lag or math.max(1, math.ceil(share_from(undelivered) * length))
  end
  local letters = redis.call('XLEN', '{' .. topic .. '}:dead:' .. group.name)
  local risk = is_at_risk(group, undelivered, unread) and 1 or 0
  for _, value in ipairs({ group.name, risk, lag, age_of(undelivered), age_of(unread), group.pending, letters }) do
    reply[#reply + 1] = value
  end
end
return reply
