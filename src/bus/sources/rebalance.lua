#!lua
-- A worker renews its lease and takes shards that nobody has, up to its fair share.
-- KEYS: workers (sorted set by the end of their lease, ms), owners (hash, shard to worker)
-- ARGV: worker; ttl (ms); number of shards; the most to take at once
-- Reply: the number of live workers; the fair share; then the worker's shards
--
-- A lease is the worker's, and its shards hang on it: renewing is one write, however many they are. A worker that comes takes
-- nothing at its first renewal: those that come with it are to be counted first.
local call = redis.call
local worker, ttl, shards, most = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
-- A clock that was set back must not prolong the lease of a worker that is gone.
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
local taken = isNew and 0 or math.min(most, share - #held, #free)
for i = 1, taken do
  call('HSET', KEYS[2], free[i], worker)
  held[#held + 1] = free[i]
end
return { #workers, share, unpack(held) }
