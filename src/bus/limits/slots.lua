-- Semaphores with a queue. Included by slots-take.lua and slots-release.lua. Uses `call` and `reservedMs`.
-- Defines `now`, countTaken and reserveFreeSlots.
--
-- Keys:
--   - <semaphore>    sorted set: holder token by the end of its hold (ms, Redis time)
--   - <semaphore>:w  sorted set, the queue: name by the time since which it waits
--
-- A slot that becomes free is reserved for `reservedMs` for the name that has waited longest (member "r:<name>"), so that no
-- other caller can take it.
local QUEUE_TTL_MS = 600000
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function countTaken(semaphore)
  call('ZREMRANGEBYSCORE', semaphore, '-inf', now)
  return call('ZCARD', semaphore)
end

-- Reserves free slots for queued names. Appends each name, and the time since which it has waited, to `reservations`.
local function reserveFreeSlots(semaphore, limit, reservations)
  while countTaken(semaphore) < limit do
    local first = call('ZPOPMIN', semaphore .. ':w')
    if not first[1] then
      return
    end
    call('ZADD', semaphore, now + reservedMs, 'r:' .. first[1])
    if call('PTTL', semaphore) < reservedMs then
      call('PEXPIRE', semaphore, reservedMs)
    end
    reservations[#reservations + 1] = first[1]
    reservations[#reservations + 1] = first[2]
  end
end
