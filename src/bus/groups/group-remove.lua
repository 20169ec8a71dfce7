#!lua flags=allow-oom
-- Removes a consumer group and its readers' dead letters; with the last group of a stream that never held an entry, the stream: it
-- was made for groups only.
-- KEYS: stream
-- ARGV: group
-- Reply: 1 where the group was there, else 0
redis.call('UNLINK', '{' .. KEYS[1] .. '}:dead:' .. ARGV[1])
if redis.call('EXISTS', KEYS[1]) == 0 then
  return 0
end
local removed = redis.call('XGROUP', 'DESTROY', KEYS[1], ARGV[1])
if redis.call('XLEN', KEYS[1]) == 0 then
  local facts, of = redis.call('XINFO', 'STREAM', KEYS[1]), {}
  for i = 1, #facts, 2 do
    of[facts[i]] = facts[i + 1]
  end
  if of['last-generated-id'] == '0-0' and of.groups == 0 then
    redis.call('UNLINK', KEYS[1])
  end
end
return removed
