-- Atomically acknowledges an entry and stores it as a dead letter.
-- KEYS:  topic, stream of dead letters.
-- ARGV:  group, entry id, maximum dead letters, TTL of the stream (ms); then the fields of the dead letter.
-- Reply: 1, or 0 if the entry was already acknowledged
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
