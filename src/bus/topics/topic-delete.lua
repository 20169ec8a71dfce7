#!lua flags=allow-oom
-- Deletes a topic and its related keys. Each call deletes a limited number: dedupe buckets first, the stream last.
--
-- KEYS:  stream
-- ARGV:  "1" to keep a stream that holds entries. Its related keys may already have been deleted by earlier calls.
--
-- Reply: 1 if there is more to delete, 0 when done, -1 if the stream is kept
local topic = KEYS[1]
if ARGV[1] == '1' and redis.call('XLEN', topic) > 0 then
  return -1
end
local prefix = '{' .. topic .. '}:'
local MOST = 500

-- Deletes the dedupe slices. See dedupe.lua for their key names.
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
    -- Deletes from the last bucket down and keeps the count correct, so that an unfinished call leaves a smaller, valid slice.
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
-- Deletes the readers' dead letters. See keys.ts for their key names.
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
