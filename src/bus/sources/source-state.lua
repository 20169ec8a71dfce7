#!lua
-- Writes the state of a pull source, unless another has taken the source over.
-- KEYS: cursor, state
-- ARGV: the run's epoch; names and values in turn, "" removes; "at" is "since" where it changes "state"
-- Reply: 1 where it is written, 0 where the source is another's
local call = redis.call
if call('HGET', KEYS[1], 'e') ~= ARGV[1] then
  return 0
end
local before = call('HGET', KEYS[2], 'state')
local given = {}
for i = 2, #ARGV, 2 do
  given[ARGV[i]] = ARGV[i + 1]
  if ARGV[i] ~= 'at' then
    if ARGV[i + 1] == '' then
      call('HDEL', KEYS[2], ARGV[i])
    else
      call('HSET', KEYS[2], ARGV[i], ARGV[i + 1])
    end
  end
end
if given.state and given.state ~= before then
  call('HSET', KEYS[2], 'since', given.at)
end
return 1
