#!lua
-- Takes a pull source over: a new epoch, higher than all before, so that its runner is refused from now on.
-- KEYS: cursor; then, on one Redis, the topics of the source (in Cluster source-stamp.lua stamps them, slot by slot)
-- ARGV: source; the least epoch to take; "1" where a wait after a failure is over
-- Reply: "backoff" and for how many ms the source is to be left alone, with nothing taken; or "acquired", the epoch, version, when the
-- source began (ms), failures in a row, and the cursor (nil where there is none)
--
-- Beside what source-position.lua says, the cursor's hash holds: s when the source began to be one, or was reset (ms); u when the
-- cursor moved last (ms); n until when its sender wants no calls (ms); r until when it is left alone after a failure (ms); f failures
-- in a row. Epochs begin at the clock, so that those of a Redis that was emptied are higher than what may still be under way.
local call = redis.call
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
-- @include ./source-epochs.lua
local source, least, skipBackoff = ARGV[1], tonumber(ARGV[2]), ARGV[3] == '1'
local held = call('HMGET', KEYS[1], 'e', 'v', 's', 'f', 'c', 'n', 'r')
local till = math.max(tonumber(held[6] or 0), skipBackoff and 0 or tonumber(held[7] or 0))
if till > now then
  return { 'backoff', till - now }
end
local epoch = math.max(tonumber(held[1] or 0) + 1, highestEpoch(source, 2) + 1, now, least)
local began = held[3] or string.format('%d', now)
call('HSET', KEYS[1], 'e', string.format('%d', epoch), 's', began)
stampEpochs(source, epoch, 2)
return { 'acquired', string.format('%d', epoch), held[2] or '0', began, skipBackoff and '0' or held[4] or '0', held[5] }
