#!lua flags=allow-oom
-- Deletes delivery records of a channel. Also sets the channel's guard key, which makes gateways drop records that they have
-- not written yet.
-- KEYS:  the organization's byte counts (delivery-records.lua)
-- ARGV:  channel, duration of the guard (ms), ids of the records to delete (without ids, all records of the channel)
local call = redis.call

-- @include ./delivery-records.lua

local store, channel = openDeliveryRecords(KEYS[1]), ARGV[1]
local chosen = {}
for n = 3, #ARGV do
  chosen[ARGV[n]] = true
end
call('SET', store.guard(channel), '', 'PX', ARGV[2])
local others = store.bytesOfOthers(channel)
local _, held = store.removeWhere(channel, function(id)
  return #ARGV == 2 or chosen[id] == true
end)
if call('EXISTS', KEYS[1]) == 1 then
  store.saveBytes(channel, others, held)
end
