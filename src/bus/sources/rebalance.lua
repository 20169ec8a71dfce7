#!lua
-- Renews a worker's lease and gives it free shards, up to its fair share.
--
-- KEYS:
--   1. workers, a sorted set: worker by end of its lease (ms)
--   2. owners, a hash: shard to worker
-- ARGV:
--   1. worker
--   2. ttl (ms)
--   3. number of shards
--   4. maximum number of shards to take in this call
--
-- Reply: {number of live workers, fair share, the worker's shards ...}
--
-- The lease belongs to the worker, not to each of its shards, so that renewing it is a single write. A new worker takes no shard
-- at its first renewal, so that workers that start at the same time are counted first.
local call = redis.call
local worker, ttl, shards, maxNew = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
-- Shortens leases that end too far in the future. Otherwise a clock that was set back would keep a dead worker alive.
for _, name in ipairs(call('ZRANGEBYSCORE', KEYS[1], string.format('(%d', now + ttl), '+inf')) do
  call('ZADD', KEYS[1], now + ttl, name)
end
local isNew = not call('ZSCORE', KEYS[1], worker)
call('ZADD', KEYS[1], now + ttl, worker)
local live = {}
local workers = call('ZRANGE', KEYS[1], 0, -1)
for _, name in ipairs(workers) do
  live[name] = true
end
local share = math.ceil(shards / #workers)

local owners = {}
local rows = call('HGETALL', KEYS[2])
for i = 1, #rows, 2 do
  owners[tonumber(rows[i])] = rows[i + 1]
end
local held, free = {}, {}
for shard = 0, shards - 1 do
  local owner = owners[shard]
  if owner == worker then
    held[#held + 1] = shard
  elseif not owner or not live[owner] then
    free[#free + 1] = shard
  end
end
local taken = isNew and 0 or math.min(maxNew, share - #held, #free)
for i = 1, taken do
  call('HSET', KEYS[2], free[i], worker)
  held[#held + 1] = free[i]
end
return { #workers, share, unpack(held) }
