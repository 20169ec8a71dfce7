#!lua flags=no-writes
-- When something was last appended to streams, be it there still or not.
-- KEYS: streams
-- Reply: the newest time (ms) of all, 0 where nothing ever was
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
