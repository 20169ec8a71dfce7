#!lua flags=allow-oom
-- Removes delivery records of a channel, and keeps gateways from writing what they hold of it still.
-- KEYS: the bytes of the organization (delivery-records.lua)
-- ARGV: channel, how long nothing is written (ms), records …; none: all
local call = redis.call

-- @include ./delivery-records.lua

local store, channel = openDeliveryRecords(KEYS[1]), ARGV[1]
local chosen = {}
for n = 3, #ARGV do
  chosen[ARGV[n]] = true
end
call('SET', store.guard(channel), '', 'PX', ARGV[2])
local others = store.others(channel)
local _, held = store.removeWhere(channel, function(id)
  return #ARGV == 2 or chosen[id] == true
end)
if call('EXISTS', KEYS[1]) == 1 then
  store.note(channel, others, held)
end
