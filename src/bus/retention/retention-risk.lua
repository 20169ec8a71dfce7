#!lua flags=no-writes
-- Looks at the groups of a topic: how far behind each is, and whether it is about to lose an entry that was not handled yet.
-- KEYS: stream
-- ARGV: max age (ms), max entries, max bytes, the part of them from which on it is a risk, samples for MEMORY USAGE,
--       first group (from 1), most groups looked at
-- Reply: the next group to look at, or 0; then for each: name; 1 where it is at risk, else 0; entries not delivered yet; the age of
-- the oldest of them (ms); the age of the oldest that is not delivered or pending (ms); entries pending; its readers' dead letters
--
-- A stream does not know the rank of an entry. What stands from the oldest unread one on is told by the group's lag while it is
-- the first undelivered; beyond that, and where Redis does not know the lag, it is estimated by time between the stream's ends.
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

-- The part of the stream that stands from an entry on.
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

-- The oldest entry that is not delivered yet, and the oldest that is not handled.
local function oldest_of(group)
  if length == 0 then
    return
  end
  local undelivered = redis.call('XRANGE', topic, '(' .. group['last-delivered-id'], '+', 'COUNT', 1)[1]
  undelivered = undelivered and undelivered[1]
  local unread = undelivered
  if group.pending > 0 then
    local pending = redis.call('XPENDING', topic, group.name)[2]
    -- One that was trimmed already is past saving.
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
