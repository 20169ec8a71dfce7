#!lua
-- Resets a consumer group to a start id: deletes it with its pending entries, if it exists, and creates it again.
-- KEYS:  stream
-- ARGV:  group, id after which the group starts
-- Reply: number of dropped pending entries
local pending = 0
if redis.call('EXISTS', KEYS[1]) == 1 then
  for _, info in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
    local name, held
    for i = 1, #info, 2 do
      if info[i] == 'name' then name = info[i + 1] end
      if info[i] == 'pending' then held = info[i + 1] end
    end
    if name == ARGV[1] then pending = held end
  end
  redis.call('XGROUP', 'DESTROY', KEYS[1], ARGV[1])
end
redis.call('XGROUP', 'CREATE', KEYS[1], ARGV[1], ARGV[2], 'MKSTREAM')
return pending
