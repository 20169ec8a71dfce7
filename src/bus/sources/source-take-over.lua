#!lua
-- Takes a pull source over: a new epoch, higher than all before, so that its runner is refused from now on.
-- KEYS: cursor; then, on one Redis, the topics of the source (in Cluster source-stamp.lua stamps them, slot by slot)
-- ARGV: source; the least epoch to take; "1" where a person has changed something: what failed before counts no longer; for how many ms
-- after the beginning of the last run none begins; the same after one that did not come to its end, or that was changed since
-- Reply: "backoff" or "interval" and for how many ms the source is to be left alone, with nothing taken; or "acquired" ("begun" where nothing was known of it), the epoch,
-- version, when the source began (ms), failures in a row, and the cursor (nil where there is none)
--
-- Beside what source-position.lua says, the cursor's hash holds: s when the source began to be one, or was reset (ms); u when the
-- cursor moved last (ms); n until when its sender wants no calls (ms); r until when it is left alone after a failure (ms), nl and rl for how long from the time it was said; f failures
-- in a row; w refusals of its sender in a row, ws since when (ms); b when the last run began that keeps an interval (ms), d that it came to its end. Epochs begin at the clock, so that those of a Redis that was emptied are higher than what may still be under way.
local call = redis.call
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
-- @include ./source-epochs.lua
local source, least = ARGV[1], tonumber(ARGV[2])
local intervalMs, retryMs = tonumber(ARGV[4]), tonumber(ARGV[5])
if ARGV[3] == '1' then
  call('HDEL', KEYS[1], 'r', 'rl', 'f', 'd', 'w', 'ws')
end
local held = call('HMGET', KEYS[1], 'e', 'v', 's', 'f', 'c', 'n', 'r', 'b', 'd', 'nl', 'rl')
-- A clock that was set back must not stop a source for longer than it was to wait, or than its interval: a time that is too far
-- ahead is brought near, and stays there.
local function latest(field, at, most)
  if at and tonumber(at) > most then
    call('HSET', KEYS[1], field, string.format('%d', most))
    return most
  end
  return tonumber(at or 0)
end
local backoff = math.max(
  latest('n', held[6], now + tonumber(held[10] or held[6] or 0)),
  latest('r', held[7], now + tonumber(held[11] or held[7] or 0))
)
local interval = held[8] and latest('b', held[8], now) + (held[9] and intervalMs or retryMs) or 0
if math.max(backoff, interval) > now then
  return { interval > backoff and 'interval' or 'backoff', math.max(backoff, interval) - now }
end
local epoch = math.max(tonumber(held[1] or 0) + 1, highestEpoch(source, 2) + 1, now, least)
local began = held[3] or string.format('%d', now)
call('HSET', KEYS[1], 'e', string.format('%d', epoch), 's', began)
if intervalMs > 0 then
  call('HSET', KEYS[1], 'b', string.format('%d', now))
  call('HDEL', KEYS[1], 'd')
end
stampEpochs(source, epoch, 2)
return { held[3] and 'acquired' or 'begun', string.format('%d', epoch), held[2] or '0', began, held[4] or '0', held[5] }
