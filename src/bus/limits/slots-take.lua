#!lua
-- Takes a slot of each of several places, or none; who finds one full waits there, where it is a place to wait at.
-- KEYS: the places (slots.lua)
-- ARGV: token of the holder, name of who asks, since when it waits (ms), how long the slots are held (ms), how long one is kept
--   for the next in line (ms); then of each place its limit and 1 where it is one to wait at
-- Reply: {the first place that is full, counted from 1, or 0; of each other whose turn it is now its name, since when it waits, …}
local call = redis.call
local token, name, since, heldMs, keptMs = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
-- @include ./slots.lua
local longest = now + math.max(heldMs, keptMs)
local full = 0
for i, place in ipairs(KEYS) do
  -- A clock that was set back must not prolong what the dead hold.
  for _, holder in ipairs(call('ZRANGEBYSCORE', place, string.format('(%d', longest), '+inf')) do
    call('ZADD', place, longest, holder)
  end
  call('ZREM', place, 'r:' .. name)
  if full == 0 and taken(place) >= tonumber(ARGV[4 + 2 * i]) then
    full = i
  end
end

local turns = { full }
if full == 0 then
  for _, place in ipairs(KEYS) do
    call('ZREM', place .. ':w', name)
    call('ZADD', place, now + heldMs, token)
    call('PEXPIRE', place, heldMs)
  end
elseif ARGV[5 + 2 * full] == '1' then
  call('ZADD', KEYS[full] .. ':w', 'LT', since, name)
  call('PEXPIRE', KEYS[full] .. ':w', WAITING_KEPT_MS)
end
-- Slots kept for it where it does not get in, and those of holders that died.
for i, place in ipairs(KEYS) do
  handOver(place, tonumber(ARGV[4 + 2 * i]), turns)
end
return turns
