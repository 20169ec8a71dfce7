#!lua
-- Writes down how a run of a pull source ended, unless another has taken the source over.
-- KEYS: cursor
-- ARGV: the run's epoch; failures in a row; for how many ms its sender wants no calls; for how many ms it is left alone after a
-- failure; how a run that keeps an interval ended: "done", "more" (it goes on at once), or "" (it did not come to its end)
-- Reply: 1 where it is written, 0 where the source is another's
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
keep('f', tonumber(ARGV[2]), 0)
keep('n', tonumber(ARGV[3]), now)
keep('r', tonumber(ARGV[4]), now)
if ARGV[5] == 'more' then
  call('HDEL', KEYS[1], 'b')
elseif ARGV[5] == 'done' and call('HEXISTS', KEYS[1], 'b') == 1 then
  call('HSET', KEYS[1], 'd', '1')
end
return 1
