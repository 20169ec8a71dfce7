#!lua
-- Writes down how a run of a pull source ended, unless another has taken the source over.
-- KEYS: cursor
-- ARGV: the run's epoch; failures in a row; for how many ms its sender wants no calls; for how many ms it is left alone after a
-- failure; how a run that keeps an interval ended: "done", "more" (it goes on at once), or "" (it did not come to its end); "1" where its
-- sender refused it, "0" where it was good, or ""; after how many such refusals in a row, over how many ms, they count as lasting; for how many
-- ms it is left alone then
-- Reply: 0 where the source is another's; 1 where it is written; 2 where its refusals last
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
local retry, isLasting = tonumber(ARGV[4]), false
if ARGV[6] == '1' then
  call('HSETNX', KEYS[1], 'ws', string.format('%d', now))
  local refusals = call('HINCRBY', KEYS[1], 'w', 1)
  local forMs = now - tonumber(call('HGET', KEYS[1], 'ws'))
  isLasting = refusals >= tonumber(ARGV[7]) and forMs >= tonumber(ARGV[8])
  if isLasting then
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
return isLasting and 2 or 1
