#!lua
-- Sets a consumer group anew: made where it is missing, else made again, without what was pending.
-- KEYS: stream
-- ARGV: group, the id after which it starts
-- Reply: how many pending entries were dropped
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
