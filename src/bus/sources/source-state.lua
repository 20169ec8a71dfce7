#!lua
-- Writes the visible state of a pull source, unless another run has taken the source over.
-- KEYS:  cursor, state, list of the newest polls
-- ARGV:  epoch of the run; then field names and values, alternating. An empty value deletes the field. Two fields are not stored
--        under their names: "at" is written to "since" when "state" changes, and "poll" is added to the list of polls.
-- Reply: 1 if written, 0 if another run owns the source
local call = redis.call
local MAX_POLLS = 20
if call('HGET', KEYS[1], 'e') ~= ARGV[1] then
  return 0
end
local before = call('HGET', KEYS[2], 'state')
local given = {}
for i = 2, #ARGV, 2 do
  given[ARGV[i]] = ARGV[i + 1]
  if ARGV[i] == 'poll' then
    call('LPUSH', KEYS[3], ARGV[i + 1])
    call('LTRIM', KEYS[3], 0, MAX_POLLS - 1)
  elseif ARGV[i] ~= 'at' then
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
