#!lua flags=allow-oom
-- Trims entries that all groups of a topic have acknowledged. A topic without groups is not trimmed, because it has no readers yet.
-- KEYS:  stream
-- ARGV:  samples for MEMORY USAGE, maximum entries to remove in one call
-- Reply: {removed entries, remaining bytes, 1 if there is more to remove, else 0}
local topic, samples, most = KEYS[1], ARGV[1], tonumber(ARGV[2])
if redis.call('EXISTS', topic) == 0 then
  return { 0, 0, 0 }
end

local function parse(id)
  local ms, sequence = string.match(id, '^(%d+)-(%d+)$')
  return { ms = ms, sequence = sequence }
end
-- Compares 64-bit numbers as digit strings, because Lua numbers lose the last digits.
local function is_less(a, b)
  if #a ~= #b then
    return #a < #b
  end
  return a < b
end
local function is_older(a, b)
  if a.ms ~= b.ms then
    return is_less(a.ms, b.ms)
  end
  return is_less(a.sequence, b.sequence)
end

-- Determines the oldest entry that at least one group still needs.
local needed
for _, raw in ipairs(redis.call('XINFO', 'GROUPS', topic)) do
  local group = {}
  for j = 1, #raw, 2 do
    group[raw[j]] = raw[j + 1]
  end
  local first
  if group.pending > 0 then
    first = redis.call('XPENDING', topic, group.name)[2]
  else
    local undelivered = redis.call('XRANGE', topic, '(' .. group['last-delivered-id'], '+', 'COUNT', 1)[1]
    first = undelivered and undelivered[1] or redis.call('XINFO', 'STREAM', topic)[8]
  end
  local id = parse(first)
  if not needed or is_older(id, needed) then
    needed = id
  end
end
local removed = 0
if needed then
  removed = redis.call('XTRIM', topic, 'MINID', '~', needed.ms .. '-' .. needed.sequence, 'LIMIT', most)
  if removed < most then
    removed = removed + redis.call('XTRIM', topic, 'MINID', needed.ms .. '-' .. needed.sequence)
  end
end
return { removed, redis.call('MEMORY', 'USAGE', topic, 'SAMPLES', samples) or 0, removed >= most and 1 or 0 }
