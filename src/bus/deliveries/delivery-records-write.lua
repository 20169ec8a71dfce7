-- Stores delivery records. A new record evicts the oldest records of its channel if the limits would otherwise be exceeded.
--
-- KEYS:  the byte counts of organizations (delivery-records.lua)
-- ARGV:
--   1. maximum records per channel
--   2. maximum bytes per channel
--   3. maximum bytes per organization
--   4. retention (ms)
--   then eight arguments per record:
--   - index of its organization in KEYS
--   - channel
--   - id
--   - arrival (ms)
--   - "<status> <request id or ->"
--   - record (JSON)
--   - recorded items (JSON)
--   - body (base64)
--
-- Reply: number of stored records
local call = redis.call
local most, channelBytes, organizationBytes = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local keepMs = tonumber(ARGV[4])
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local OVERHEAD = 400

-- @include ./delivery-records.lua

local written = 0
for n = 5, #ARGV, 8 do
  local bytes, channel, id = KEYS[tonumber(ARGV[n])], ARGV[n + 1], ARGV[n + 2]
  local arrivedAt, facts, record, items, body = ARGV[n + 3], ARGV[n + 4], ARGV[n + 5], ARGV[n + 6], ARGV[n + 7]
  local store = openDeliveryRecords(bytes)
  if call('EXISTS', store.guard(channel)) == 0 then
    local index = store.index(channel)
    local others = store.bytesOfOthers(channel)
    -- Removes index members whose records have already expired.
    call('ZREMRANGEBYSCORE', index, '-inf', now - keepMs)
    local held, left = 0, call('ZRANGE', index, 0, -1)
    for _, member in ipairs(left) do
      local _, size = store.parseMember(member)
      held = held + tonumber(size)
    end
    local size = #record + #items + #body + OVERHEAD
    local limit = math.min(channelBytes, organizationBytes - others)
    local oldest = 1
    while oldest <= #left and (#left - oldest + 1 >= most or held + size > limit) do
      local older, olderSize = store.parseMember(left[oldest])
      call('ZREM', index, left[oldest])
      call('UNLINK', store.record(older))
      held = held - tonumber(olderSize)
      oldest = oldest + 1
    end
    if held + size <= limit then
      call('HSET', store.record(id), 'm', record, 'i', items, 'b', body)
      call('PEXPIRE', store.record(id), keepMs)
      call('ZADD', index, arrivedAt, id .. ' ' .. size .. ' ' .. facts)
      call('PEXPIRE', index, keepMs)
      held = held + size
      written = written + 1
    end
    store.saveBytes(channel, others, held)
    call('PEXPIRE', bytes, keepMs)
  end
end
return written
