#!lua flags=no-writes
-- Returns the time of the last append to any of the streams, even if that entry has been removed since.
-- KEYS:  streams
-- Reply: the time (ms), or 0 if no entry was ever appended
local newest = 0
for _, key in ipairs(KEYS) do
  if redis.call('EXISTS', key) == 1 then
    local facts = redis.call('XINFO', 'STREAM', key)
    for i = 1, #facts, 2 do
      if facts[i] == 'last-generated-id' then
        newest = math.max(newest, tonumber(string.match(facts[i + 1], '^(%d+)')))
      end
    end
  end
end
return newest
