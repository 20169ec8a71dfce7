-- Places of which so many may be taken; a fragment of slots-take.lua and slots-release.lua. It expects `call` and `keptMs`,
-- and defines `now`, taken and handOver.
--
-- A place is a sorted set: who holds a slot of it, by when that ends (ms, by Redis TIME). Beside it <place>:w, who waits for one,
-- by since when. A slot that comes free is kept for the one that has waited longest, as `r:<name>`, for `keptMs`, so that nobody
-- takes it before.
local WAITING_KEPT_MS = 600000
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function taken(place)
  call('ZREMRANGEBYSCORE', place, '-inf', now)
  return call('ZCARD', place)
end

-- Keeps free slots for those who wait; adds to `turns` their names, each with since when it has waited.
local function handOver(place, limit, turns)
  while taken(place) < limit do
    local first = call('ZPOPMIN', place .. ':w')
    if not first[1] then
      return
    end
    call('ZADD', place, now + keptMs, 'r:' .. first[1])
    if call('PTTL', place) < keptMs then
      call('PEXPIRE', place, keptMs)
    end
    turns[#turns + 1] = first[1]
    turns[#turns + 1] = first[2]
  end
end
