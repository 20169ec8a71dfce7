#!lua flags=allow-oom
-- Trims a topic to its limits.
--
-- KEYS:  stream
-- ARGV:  maximum age (ms), maximum entries, maximum bytes, samples for MEMORY USAGE, maximum entries to remove in one call
--
-- Reply: {removed entries, remaining entries, 1 if there is more to remove, else 0, remaining bytes}
local topic = KEYS[1]
local maxAge, maxEntries, maxBytes, samples, most =
  tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4], tonumber(ARGV[5])
local before = redis.call('XLEN', topic)
if before == 0 then
  return { 0, 0, 0, 0 }
end

local time = redis.call('TIME')
local oldest = string.format('%d', math.max(0, time[1] * 1000 + math.floor(time[2] / 1000) - maxAge))

-- Trims by whole nodes first ("~"), because exact trimming has no LIMIT. Then trims exactly: otherwise the last hundred entries
-- of an idle topic would never be removed. Returns true if there is more to remove.
local function trim(strategy, threshold)
  if redis.call('XTRIM', topic, strategy, '~', threshold, 'LIMIT', most) >= most then
    return true
  end
  redis.call('XTRIM', topic, strategy, threshold)
  return false
end

local left_bytes = 0
local isMore = trim('MINID', oldest) or trim('MAXLEN', maxEntries)
if not isMore then
  -- Trims and measures up to three times, because entries differ in size and Redis estimates the bytes from a few samples.
  for _ = 1, 3 do
    local length = redis.call('XLEN', topic)
    local bytes = length > 0 and redis.call('MEMORY', 'USAGE', topic, 'SAMPLES', samples) or 0
    left_bytes = math.min(bytes, maxBytes)
    if bytes <= maxBytes then
      break
    end
    isMore = trim('MAXLEN', math.floor(length * maxBytes / bytes))
    if isMore then
      break
    end
  end
end
local left = redis.call('XLEN', topic)
return { before - left, left, isMore and 1 or 0, math.floor(left_bytes) }
