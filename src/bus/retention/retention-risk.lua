#!lua flags=no-writes
-- Tells which groups of a topic are about to lose an entry that was not handled yet.
-- KEYS: stream
-- ARGV: max age (ms), max entries, max bytes, the part of them from which on it is a risk, samples for MEMORY USAGE,
--       first group (from 1), most groups looked at
-- Reply: the next group to look at, or 0; then the names of those at risk
--
-- A stream does not know the rank of an entry. What stands from the oldest unread one on is told by the group's lag while it is
-- the first undelivered; beyond that it is estimated by time between the stream's ends.
local topic = KEYS[1]
local max_age, max_entries, max_bytes, part, samples, first, most =
  tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7])
local length = redis.call('XLEN', topic)
if length == 0 then
  return { 0 }
end
local function ms_of(id)
  return tonumber(string.match(id, '^%d+'))
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local head = redis.call('XRANGE', topic, '-', '+', 'COUNT', 1)[1][1]
local tail = redis.call('XREVRANGE', topic, '+', '-', 'COUNT', 1)[1][1]
local bytes = redis.call('MEMORY', 'USAGE', topic, 'SAMPLES', samples)
local is_filling = length > part * max_entries or bytes > part * max_bytes

local function older(a, b)
  local a_ms, b_ms = ms_of(a), ms_of(b)
  if a_ms ~= b_ms then
    return a_ms < b_ms
  end
  return tonumber(string.match(a, '%d+$')) < tonumber(string.match(b, '%d+$'))
end

local function is_at_risk(group)
  local undelivered = redis.call('XRANGE', topic, '(' .. group['last-delivered-id'], '+', 'COUNT', 1)[1]
  local unread = undelivered and undelivered[1]
  if group.pending > 0 then
    local pending = redis.call('XPENDING', topic, group.name)[2]
    -- One that was trimmed already is past saving.
    local left = redis.call('XRANGE', topic, pending, '+', 'COUNT', 1)[1]
    if left and (not unread or older(left[1], unread)) then
      unread = left[1]
    end
  end
  if not unread then
    return false
  end
  if now - ms_of(unread) > part * max_age then
    return true
  end
  if not is_filling then
    return false
  end
  local span = ms_of(tail) - ms_of(head)
  local share = span > 0 and (ms_of(tail) - ms_of(unread)) / span or 1
  local behind = math.max(group.lag and group.lag + group.pending or 0, share * length)
  if undelivered and unread == undelivered[1] and group.lag then
    behind = group.lag
  end
  behind = math.min(behind, length)
  return behind > part * max_entries or bytes * behind / length > part * max_bytes
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
  if is_at_risk(group) then
    reply[#reply + 1] = group.name
  end
end
return reply
