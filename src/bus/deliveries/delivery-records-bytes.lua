#!lua flags=allow-oom
-- What an organization's delivery records hold, less those of channels whose records have all ended.
-- KEYS: the bytes of the organization (delivery-records.lua)
-- Reply: bytes
local call = redis.call

-- @include ./delivery-records.lua

local store, total = openDeliveryRecords(KEYS[1]), 0
local held = call('HGETALL', KEYS[1])
for n = 1, #held, 2 do
  if held[n] ~= 't' then
    if call('EXISTS', store.index(held[n])) == 1 then
      total = total + tonumber(held[n + 1])
    else
      call('HDEL', KEYS[1], held[n])
    end
  end
end
if #held > 0 then
  call('HSET', KEYS[1], 't', total)
end
return total
