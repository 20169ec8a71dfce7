-- Keeps delivery records, each in the place of older ones of its channel where there is no room.
-- KEYS: the bytes of organizations (delivery-records.lua)
-- ARGV: most records of a channel, most bytes of a channel, of an organization, how long one is kept (ms), then for each record:
--   which of KEYS, channel, id, arrival (ms), "<status> <request id or ->", record, what its paths yielded, body
-- Reply: how many were written
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
    local others = store.others(channel)
    -- Their hashes have ended by themselves.
    call('ZREMRANGEBYSCORE', index, '-inf', now - keepMs)
    local held, left = 0, call('ZRANGE', index, 0, -1)
    for _, member in ipairs(left) do
      local _, size = store.partsOf(member)
      held = held + tonumber(size)
    end
    local size = #record + #items + #body + OVERHEAD
    local limit = math.min(channelBytes, organizationBytes - others)
    local oldest = 1
    while oldest <= #left and (#left - oldest + 1 >= most or held + size > limit) do
      local older, olderSize = store.partsOf(left[oldest])
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
    store.note(channel, others, held)
    call('PEXPIRE', bytes, keepMs)
  end
end
return written
