#!lua flags=allow-oom
-- Returns the size of an organization's delivery records. Removes the stored sizes of channels whose records have all expired,
-- and corrects the total.
-- KEYS:  the organization's byte counts (delivery-records.lua)
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
