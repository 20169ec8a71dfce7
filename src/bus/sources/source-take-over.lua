#!lua
-- Makes the caller the owner of a pull source: sets a new epoch above all earlier ones, so that writes of the previous owner are
-- rejected.
--
-- KEYS:  cursor; then the topics of the source. In a Cluster the topics are left out, and source-stamp.lua processes them slot by
--        slot.
-- ARGV:
--   1. source
--   2. lowest epoch to take
--   3. "1" to ignore earlier failures, because a user has changed the configuration; else "0"
--   4. minimum time between the starts of two runs (ms)
--   5. minimum time that applies instead if the last run did not finish, or if a user has changed the configuration since (ms)
--   6. minimum time that applies to this run instead of both (ms), because a webhook requested the run; else "". The next run must
--      wait for the usual times.
--
-- Reply, one of:
--   - {"backoff" or "interval", remaining wait (ms)}: the source must wait. Its owner has not changed.
--   - {"acquired" or "first", epoch, version, start of the source (ms), consecutive failures, cursor or nil}. "first" means that
--     Redis had no data about the source.
--
-- Fields of the cursor hash, in addition to those in source-position.lua (times in ms):
--   - s: time at which the source was created or reset
--   - u: time of the last cursor change
--   - n, nl: time before which the sender accepts no calls, and the length of that wait
--   - r, rl: end of the wait after a failure, and the length of that wait
--   - f: consecutive failures
--   - w, ws: consecutive rejections by the sender, and the time of the first of them
--   - b, d: start of the last run with an interval; d exists if that run finished
--
-- An epoch is at least the current time, so that it is higher than those of runs in flight even after Redis was flushed.
local call = redis.call
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
-- @include ./source-epochs.lua
local source, minEpoch = ARGV[1], tonumber(ARGV[2])
local intervalMs, retryMs, wakeMs = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
if ARGV[3] == '1' then
  call('HDEL', KEYS[1], 'r', 'rl', 'f', 'd', 'w', 'ws')
end
local held = call('HMGET', KEYS[1], 'e', 'v', 's', 'f', 'c', 'n', 'r', 'b', 'd', 'nl', 'rl')
-- Limits a stored time to `most`. Without this limit, a source would wait too long after the clock was set back.
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
local interval = held[8] and latest('b', held[8], now) + (wakeMs or held[9] and intervalMs or retryMs) or 0
if math.max(backoff, interval) > now then
  return { interval > backoff and 'interval' or 'backoff', math.max(backoff, interval) - now }
end
local epoch = math.max(tonumber(held[1] or 0) + 1, highestEpoch(source, 2) + 1, now, minEpoch)
local began = held[3] or string.format('%d', now)
call('HSET', KEYS[1], 'e', string.format('%d', epoch), 's', began)
if intervalMs > 0 or wakeMs then
  call('HSET', KEYS[1], 'b', string.format('%d', now))
  call('HDEL', KEYS[1], 'd')
end
stampEpochs(source, epoch, 2)
return { held[3] and 'acquired' or 'first', string.format('%d', epoch), held[2] or '0', began, held[4] or '0', held[5] }
