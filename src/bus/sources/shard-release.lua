#!lua flags=allow-oom
-- Releases shards of a worker.
-- KEYS:  workers, owners
-- ARGV:  worker; "1" to remove the worker and release all its shards, or "0" and the shards to release
-- Reply: number of released shards
local call = redis.call
local worker, leaves = ARGV[1], ARGV[2] == '1'
local shards = {}
if leaves then
  call('ZREM', KEYS[1], worker)
  shards = call('HKEYS', KEYS[2])
else
  for i = 3, #ARGV do
    shards[#shards + 1] = ARGV[i]
  end
end
local released = 0
for _, shard in ipairs(shards) do
  if call('HGET', KEYS[2], shard) == worker then
    released = released + call('HDEL', KEYS[2], shard)
  end
end
return released
