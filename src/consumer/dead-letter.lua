-- Makes an entry a dead letter and acknowledges it, both or none.
-- KEYS: topic, dead letters of the group on it
-- ARGV: group, entry id, maximum number of dead letters, their TTL (ms), then the fields of the dead letter
-- Reply: 1, or 0 where the entry was acknowledged already
if redis.call('XACK', KEYS[1], ARGV[1], ARGV[2]) == 0 then
  return 0
end
local fields = {}
for i = 5, #ARGV do
  fields[#fields + 1] = ARGV[i]
end
redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[3], '*', unpack(fields))
redis.call('PEXPIRE', KEYS[2], ARGV[4])
return 1
