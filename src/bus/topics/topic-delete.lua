#!lua flags=allow-oom
-- Removes a topic and its companions, a bounded number of keys a call: dedupe buckets first, the stream last.
-- KEYS: stream
-- ARGV: 1 where a stream that holds an entry is to stay. What earlier calls have removed of its companions is gone
-- Reply: 1 where there is more to remove, 0 when done, -1 where it stays
local topic = KEYS[1]
if ARGV[1] == '1' and redis.call('XLEN', topic) > 0 then
  return -1
end
local prefix = '{' .. topic .. '}:'
local MOST = 500

-- Dedupe slices, as dedupe.lua names them.
local slicings = { [''] = true }
for _, field in ipairs(redis.call('HKEYS', prefix .. 'e')) do
  if string.sub(field, 1, 1) == 'w' then
    slicings[string.sub(field, 2) == 'r' and '' or string.sub(field, 2)] = true
  end
end

local removed = 0
for slicing in pairs(slicings) do
  for slice = 0, 7 do
    local base = prefix .. slicing .. slice
    local count = tonumber(redis.call('HGET', base, 'n') or 1)
    -- From the last bucket down, the count kept up to date: what a call leaves is a smaller slice.
    while count > 1 and removed < MOST do
      count = count - 1
      redis.call('UNLINK', base .. '.' .. string.format('%x', count))
      redis.call('HSET', base, 'n', count)
      removed = removed + 1
    end
    if removed >= MOST then
      return 1
    end
    removed = removed + redis.call('UNLINK', base)
  end
end
-- Dead letters of readers, as keys.ts names them.
if redis.call('EXISTS', topic) == 1 then
  for _, row in ipairs(redis.call('XINFO', 'GROUPS', topic)) do
    local group = {}
    for i = 1, #row, 2 do
      group[row[i]] = row[i + 1]
    end
    redis.call('UNLINK', prefix .. 'dead:' .. group.name)
  end
end
redis.call('UNLINK', prefix .. 'e', prefix .. 't', topic)
return 0
