-- Renews the lease of an ordered reader and assigns free topics to it, up to its fair share.
-- KEYS:  readers (sorted set by end of lease, ms), owners (hash from topic to reader).
-- ARGV:  reader, TTL (ms; 0 ends the lease), number of topics to release, those topics, then all topics of the subscription.
-- Reply: the fair share, then the reader's topics
--
-- The lease belongs to the reader and covers all its topics, so renewing it is one write for any number of topics.
-- The first call of a new reader assigns no topics, so that readers that start together are all counted first.
local call = redis.call
local reader, ttl, releases = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for i = 4, 3 + releases do
  if call('HGET', KEYS[2], ARGV[i]) == reader then
    call('HDEL', KEYS[2], ARGV[i])
  end
end
if ttl == 0 then
  call('ZREM', KEYS[1], reader)
  return { 0 }
end
call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
local isNew = not call('ZSCORE', KEYS[1], reader)
call('ZADD', KEYS[1], now + ttl, reader)
local live, readers = {}, call('ZRANGE', KEYS[1], 0, -1)
for _, name in ipairs(readers) do
  live[name] = true
end
call('PEXPIRE', KEYS[1], ttl * 10)
local topics = #ARGV - 3 - releases
local share = math.ceil(topics / #readers)
local owned, free = {}, {}
for i = 4 + releases, #ARGV do
  local owner = call('HGET', KEYS[2], ARGV[i])
  if owner == reader then
    owned[#owned + 1] = ARGV[i]
  elseif not owner or not live[owner] then
    free[#free + 1] = ARGV[i]
  end
end
if not isNew then
  for i = 1, math.min(share - #owned, #free) do
    call('HSET', KEYS[2], free[i], reader)
    owned[#owned + 1] = free[i]
  end
end
if #owned > 0 then
  call('PEXPIRE', KEYS[2], ttl * 10)
end
return { share, unpack(owned) }
