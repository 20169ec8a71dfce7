#!lua flags=allow-oom
-- Gives slots back, and keeps free ones for those who wait.
-- KEYS: the places (slots.lua)
-- ARGV: token of the holder, how long one is kept for the next in line (ms), then the limit of each place
-- Reply: of each whose turn it is now its name, since when it waits, …
local call = redis.call
local keptMs = tonumber(ARGV[2])
-- @include ./slots.lua
local turns = {}
for i, place in ipairs(KEYS) do
  call('ZREM', place, ARGV[1])
  handOver(place, tonumber(ARGV[2 + i]), turns)
end
return turns
