#!lua
-- Stores the result of a run of a pull source, unless another run has taken the source over.
--
-- KEYS:  cursor
-- ARGV:
--   1. epoch of the run
--   2. consecutive failures
--   3. delay requested by the sender (ms), or 0
--   4. delay after a failure (ms), or 0
--   5. progress of a run with an interval: "done", "more" (it continues at once), or "" (it did not finish)
--   6. "1" if the sender rejected the run, "0" if the run succeeded, "" otherwise
--   7. minimum number of consecutive rejections that count as persistent
--   8. minimum duration of these rejections (ms)
--   9. delay after persistent rejections (ms)
--
-- Reply: 0 if another run owns the source, 1 if written, 2 if written and the rejections are persistent
local call = redis.call
if call('HGET', KEYS[1], 'e') ~= ARGV[1] then
  return 0
end
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function keep(field, number, since)
  if number > 0 then
    call('HSET', KEYS[1], field, string.format('%d', since + number))
  else
    call('HDEL', KEYS[1], field)
  end
end
local retry, isPersistent = tonumber(ARGV[4]), false
if ARGV[6] == '1' then
  call('HSETNX', KEYS[1], 'ws', string.format('%d', now))
  local rejections = call('HINCRBY', KEYS[1], 'w', 1)
  local forMs = now - tonumber(call('HGET', KEYS[1], 'ws'))
  isPersistent = rejections >= tonumber(ARGV[7]) and forMs >= tonumber(ARGV[8])
  if isPersistent then
    retry = math.max(retry, tonumber(ARGV[9]))
  end
elseif ARGV[6] == '0' then
  call('HDEL', KEYS[1], 'w', 'ws')
end
keep('f', tonumber(ARGV[2]), 0)
keep('n', tonumber(ARGV[3]), now)
keep('nl', tonumber(ARGV[3]), 0)
keep('r', retry, now)
keep('rl', retry, 0)
if ARGV[5] == 'more' then
  call('HDEL', KEYS[1], 'b')
elseif ARGV[5] == 'done' and call('HEXISTS', KEYS[1], 'b') == 1 then
  call('HSET', KEYS[1], 'd', '1')
end
return isPersistent and 2 or 1
