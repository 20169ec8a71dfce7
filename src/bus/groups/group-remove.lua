#!lua flags=allow-oom
-- Removes a consumer group and the dead letters of its readers. Also removes the stream if it has no other group and never held
-- an entry, because such a stream was created only for its groups.
-- KEYS:  stream
-- ARGV:  group
-- Reply: 1 if the group existed, else 0
redis.call('UNLINK', '{' .. KEYS[1] .. '}:dead:' .. ARGV[1])
if redis.call('EXISTS', KEYS[1]) == 0 then
  return 0
end
local removed = redis.call('XGROUP', 'DESTROY', KEYS[1], ARGV[1])
if redis.call('XLEN', KEYS[1]) == 0 then
  local facts, info = redis.call('XINFO', 'STREAM', KEYS[1]), {}
  for i = 1, #facts, 2 do
    info[facts[i]] = facts[i + 1]
  end
  if info['last-generated-id'] == '0-0' and info.groups == 0 then
    redis.call('UNLINK', KEYS[1])
  end
end
return removed
