#!lua flags=no-writes
-- Returns one page of quarantine record ids over several channels and indexes, ordered by first arrival, then id.
-- KEYS:  the organization's quarantine budget (quarantine-store.lua)
-- ARGV:  from, to (µs, in ZRANGEBYSCORE syntax), offset, limit, indexes separated by spaces, channels ...
-- Reply: {total number of matching records, ids of the page ...}
local call = redis.call
local prefix = string.sub(KEYS[1], 1, -2)
local from, to = ARGV[1], ARGV[2]
local offset, limit = tonumber(ARGV[3]), tonumber(ARGV[4])

local sets, total = {}, 0
for n = 6, #ARGV do
  for index in string.gmatch(ARGV[5], '%S+') do
    local key = prefix .. 'x:' .. ARGV[n] .. ':' .. index
    local held = call('ZCOUNT', key, from, to)
    if held > 0 then
      sets[#sets + 1] = key
      total = total + held
    end
  end
end
if offset >= total or limit == 0 then
  return { total }
end
if #sets == 1 then
  return { total, unpack(call('ZRANGEBYSCORE', sets[1], from, to, 'LIMIT', offset, limit)) }
end

-- Skips most records before the page: a binary search finds the latest time before which at most `offset` records arrived.
local start, skipped = from, 0
if offset > 0 then
  local low, high = 0, 2 ^ 52
  while high - low > 1 do
    local middle = math.floor((low + high) / 2)
    local before = 0
    for _, key in ipairs(sets) do
      before = before + call('ZCOUNT', key, from, '(' .. string.format('%d', middle))
    end
    if before <= offset then
      low, skipped = middle, before
    else
      high = middle
    end
  end
  if skipped > 0 then
    start = string.format('%d', low)
  end
end

local found = {}
for _, key in ipairs(sets) do
  local page = call('ZRANGEBYSCORE', key, start, to, 'WITHSCORES', 'LIMIT', 0, offset - skipped + limit)
  for n = 1, #page, 2 do
    found[#found + 1] = { id = page[n], at = tonumber(page[n + 1]) }
  end
end
table.sort(found, function(a, b)
  if a.at ~= b.at then
    return a.at < b.at
  end
  return a.id < b.id
end)
local reply = { total }
for n = offset - skipped + 1, math.min(offset - skipped + limit, #found) do
  reply[#reply + 1] = found[n].id
end
return reply
