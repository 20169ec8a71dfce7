#!lua flags=no-writes
-- Returns the newest members of several sorted sets and the number of all matching members. Sorts by score, then by member, both
-- descending.
--
-- KEYS:  sorted sets. A member is an id, which fields can follow, separated by spaces.
-- ARGV:
--   1. lowest score (inclusive)
--   2. score limit (exclusive)
--   3. maximum number of returned members
--   4. score of the last member of the previous page, or "" for the first page
--   5. that member's id
--   6. score below which members are not returned, because the caller already has enough
--   then pairs: number of a field (the id is field 1), and the required value
--
-- Reply: {number of matching members, then for each member the index of its key, the member, its score}
local call = redis.call
local from, to, limit = ARGV[1], ARGV[2], tonumber(ARGV[3])
local afterScore, afterId, floor = tonumber(ARGV[4]), ARGV[5], tonumber(ARGV[6])
local least, most = tonumber(from), tonumber(to)

local function isWanted(member)
  if #ARGV == 6 then
    return true
  end
  local fields = {}
  for field in string.gmatch(member, '%S+') do
    fields[#fields + 1] = field
  end
  for n = 7, #ARGV, 2 do
    if fields[tonumber(ARGV[n])] ~= ARGV[n + 1] then
      return false
    end
  end
  return true
end

local found = {}

local function comesFirst(a, b)
  if a.at ~= b.at then
    return a.at > b.at
  end
  return a.member > b.member
end

-- Drops all but the newest `limit` members, and raises the floor to the score of the last one.
local function cut()
  table.sort(found, comesFirst)
  for n = #found, limit + 1, -1 do
    found[n] = nil
  end
  if limit > 0 and #found == limit then
    floor = math.max(floor, found[limit].at)
  end
end

local function add(index, page)
  for n = 1, #page, 2 do
    if isWanted(page[n]) then
      found[#found + 1] = { index = index, member = page[n], score = page[n + 1], at = tonumber(page[n + 1]) }
    end
  end
end

local function addNewest(index, key)
  local below = to
  if afterScore then
    if afterScore >= least and afterScore >= floor and afterScore < most then
      local ties = call('ZREVRANGEBYSCORE', key, ARGV[4], ARGV[4], 'WITHSCORES')
      local rest = {}
      for n = 1, #ties, 2 do
        if string.match(ties[n], '^%S+') < afterId then
          rest[#rest + 1] = ties[n]
          rest[#rest + 1] = ties[n + 1]
        end
      end
      add(index, rest)
    end
    if afterScore < most then
      below = ARGV[4]
    end
  end
  local lowest = from
  if floor > least then
    lowest = string.format('%.0f', floor)
  end
  local args = { key, '(' .. below, lowest, 'WITHSCORES' }
  -- Without a filter, older members of the set cannot be among the newest `limit`.
  if #ARGV == 6 then
    args[5], args[6], args[7] = 'LIMIT', 0, limit
  end
  add(index, call('ZREVRANGEBYSCORE', unpack(args)))
end

local total = 0
for index, key in ipairs(KEYS) do
  if #ARGV == 6 then
    total = total + call('ZCOUNT', key, from, '(' .. to)
  else
    for _, member in ipairs(call('ZREVRANGEBYSCORE', key, '(' .. to, from)) do
      if isWanted(member) then
        total = total + 1
      end
    end
  end
  addNewest(index, key)
  if #found > 2 * limit then
    cut()
  end
end
cut()
local reply = { total }
for _, one in ipairs(found) do
  reply[#reply + 1] = one.index
  reply[#reply + 1] = one.member
  reply[#reply + 1] = one.score
end
return reply
