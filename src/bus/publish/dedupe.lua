-- The dedupe memory: remembers the ids of published events, and the signed bytes of deliveries. Included by publish.lua and
-- dedupe-find.lua. Uses `call`, `time` and `now` (ms). A memory is a table {prefix, notes, views, slices}.
-- Defines openView, recall, recallOrClaim, store, differs and unclaim.
--
-- Time is divided into slices. An id is stored in the slice in which it was published, and all ids of a slice expire together.
-- A slice is one or more small hashes ("buckets") that grow by linear hashing:
--   - <prefix><slicing><slice index modulo 8>                  first bucket; <slicing> is empty for the default slicing
--   - <prefix><slicing><slice index modulo 8>.<bucket in hex>  further buckets
--
-- <prefix> is "{<topic>}:" or "inlet:{b.<channel>}:". Field "n" of the first bucket is the number of buckets. If it is missing,
-- there is one bucket. A slice lives for at most five slice lengths, so it has expired before its key name is used again.
--
-- Hash field: the identity (22 characters). Hash value: the digest (11 characters), then the entry id in one of two packed forms:
--   - relative: milliseconds since the start of the slice (4 bytes), sequence number (0, 1, 2 or 4 bytes)
--   - absolute: milliseconds (6 bytes), sequence number (1 or 4 bytes). Used if the relative form does not fit, for example
--     after the clock was set back.
--
-- Names are short and values packed because a topic with rare events needs a hash for each id.
--
-- The hash <prefix>e ("notes") has a field w<slicing> for each slicing in use. Its value is the time (ms) until which slices of
-- that slicing must be searched. These fields exist only if the memory ever used a slicing other than the default.
local packInt, unpackInt, byte, char = struct.pack, struct.unpack, string.byte, string.char
local IDENTITY, DIGEST = 22, 11
-- The digest of an event that is compared by its id alone, because the same event may arrive with other data. It equals every digest.
local ANY_DIGEST = '***********'
-- If a bucket holds more ids than this, its slice splits the next bucket in order. Redis stores a hash of up to 128 fields
-- compactly (listpack). The margin is needed because a full bucket keeps growing until the bucket itself is split.
local BUCKET_IDS = 80
-- A larger bucket is not split, because moving its fields would block Redis. Only a sender that deliberately picks colliding ids can fill a
-- bucket that far. The slice then gets no further buckets.
local MAX_MOVED = 1000
local DEFAULT_SLICING = 'r'
local DEFAULT_WINDOW = 86400000

-- Returns the slice length in ms: from 165 ms ("a") to 8 days ("w"), and 6 hours for the default. A dedupe window is at most four
-- slice lengths long.
local function sliceLength(slicing)
  return DEFAULT_WINDOW / 4 * 2 ^ (byte(slicing) - byte(DEFAULT_SLICING))
end

-- Adds the slices of a window to `slices`, newest first. New ids are stored in the newest slice only, so older slices that do
-- not exist are skipped. Fields of a slice:
--   - base                      key of the first bucket
--   - start, expiresAt          ms
--   - count, round              number of buckets, and the largest power of two not above it; nil until read
--   - lastIdentity, lastBucket  cached result of findBucket
--   - exists                    nil while unknown
--   - ms, time, isOutside       cached packing of the last entry time
local function addSlices(slices, topic, slicing, window)
  local length = sliceLength(slicing)
  local name = topic.prefix .. (slicing == DEFAULT_SLICING and '' or slicing)
  local newestIndex = floor(now / length)
  for index = newestIndex, floor((now - window) / length), -1 do
    local base = name .. index % 8
    local slice, isOlder = topic.slices[base], index < newestIndex
    if slice == nil then
      -- Sets all fields, even to nil, because Lua would reallocate the table when it grows.
      slice = (not isOlder or call('EXISTS', base) == 1) and {
        base = base, start = floor(index * length), expiresAt = (index + 1) * length + window, exists = isOlder or nil,
        count = nil, round = nil, lastIdentity = nil, lastBucket = nil, ms = nil, time = nil, isOutside = nil,
      }
      topic.slices[base] = slice
    end
    if slice then
      slices[#slices + 1] = slice
    end
  end
end

-- Returns the slices that a policy must search. `slices` belong to the policy's own slicing, newest first. `others` belong to
-- slicings that were used before the channel's dedupe window was changed.
local function openView(topic, policy)
  local slices, others = {}, {}
  local view = { slices = slices, others = others, noteOwn = nil, noteDefault = nil }
  topic.views[policy.text] = view
  addSlices(slices, topic, policy.slicing, policy.window)
  local notes, own = topic.notes, 'w' .. policy.slicing
  local isDefault = policy.slicing == DEFAULT_SLICING
  if isDefault and not notes then
    return view
  end
  local shared = not isDefault
  for name, till in pairs(notes or {}) do
    if sub(name, 1, 1) == 'w' and name ~= own and till > now then
      shared = true
      local slicing = sub(name, 2)
      addSlices(others, topic, slicing, sliceLength(slicing) * 4)
    end
  end
  if not isDefault and not (notes and notes[own]) and not (notes and notes['w' .. DEFAULT_SLICING]) then
    local before = {}
    addSlices(before, topic, DEFAULT_SLICING, DEFAULT_WINDOW)
    for _, slice in ipairs(before) do
      if slice.exists or call('EXISTS', slice.base) == 1 then
        view.noteDefault = true
        others[#others + 1] = slice
      end
    end
  end
  view.noteOwn = shared and ((notes and notes[own]) or 0) < now + policy.window
  return view
end

local function noteSlicings(topic, policy, view)
  local notes = topic.notes or {}
  topic.notes = notes
  -- Drops the cached views of other policies in this call, because they do not include the slicings noted here.
  topic.views = { [policy.text] = view }
  if view.noteDefault then
    notes['w' .. DEFAULT_SLICING] = now + DEFAULT_WINDOW
    call('HSET', topic.prefix .. 'e', 'w' .. DEFAULT_SLICING, format('%d', now + DEFAULT_WINDOW))
    view.noteDefault = nil
  end
  if view.noteOwn then
    local till = now + 2 * policy.window
    notes['w' .. policy.slicing] = till
    call('HSET', topic.prefix .. 'e', 'w' .. policy.slicing, format('%d', till))
    view.noteOwn = nil
  end
end

local function setCount(slice, count)
  local round = slice.round or 1
  while round * 2 <= count do
    round = round * 2
  end
  slice.count, slice.round, slice.lastIdentity = count, round, nil
end

-- Returns a number from the first five characters (30 bits) of an identity. An identity is a hash itself, so the low bits
-- are evenly distributed.
local function hashIdentity(identity)
  local a, b, c, d, e = byte(identity, 1, 5)
  return (((a * 37 + b) * 37 + c) * 37 + d) * 37 + e
end

local function bucketKey(slice, bucket)
  return bucket == 0 and slice.base or format('%s.%x', slice.base, bucket)
end

local function findBucket(slice, identity)
  if slice.count == 1 then
    return slice.base
  end
  -- An identity that was not found is usually stored next, so the last result is often reused.
  if slice.lastIdentity == identity then
    return slice.lastBucket
  end
  local bucket = hashIdentity(identity) % (slice.round * 2)
  if bucket >= slice.count then
    bucket = bucket - slice.round
  end
  local key = bucketKey(slice, bucket)
  slice.lastIdentity, slice.lastBucket = identity, key
  return key
end

-- Splits the next bucket of a slice. An empty bucket gets a dummy field "e", so that it exists. Every bucket below the count must
-- exist, because its expiry is set only when it is created.
local function splitNext(slice)
  local count, round, till = slice.count, slice.round, format('%d', slice.expiresAt)
  local from = count - round
  local fromKey, toKey = bucketKey(slice, from), bucketKey(slice, count)
  if call('HLEN', fromKey) > MAX_MOVED then
    return
  end
  local fields = call('HGETALL', fromKey)
  local moved, gone, size, buckets = {}, {}, 0, round * 2
  for i = 1, #fields, 2 do
    local field = fields[i]
    if #field == IDENTITY and hashIdentity(field) % buckets == count then
      size = size + 1
      gone[size], moved[size * 2 - 1], moved[size * 2] = field, field, fields[i + 1]
    end
  end
  setCount(slice, count + 1)
  call('HSET', slice.base, 'n', slice.count)
  if size == 0 then
    call('HSET', toKey, 'e', '')
  else
    if from > 0 and size * 2 == #fields then
      call('HSET', fromKey, 'e', '')
    end
    call('HSET', toKey, unpack(moved))
    call('HDEL', fromKey, unpack(gone))
  end
  call('PEXPIREAT', toKey, till)
end

-- Returns the stored value of an identity in a slice, or false/nil if there is none.
local function findIn(slice, identity)
  if not slice.count then
    local found = call('HMGET', slice.base, 'n', identity)
    setCount(slice, tonumber(found[1] or 1))
    slice.exists = (found[1] or found[2]) and true or nil
    if slice.count == 1 then
      return found[2]
    end
  elseif slice.exists == nil then
    slice.exists = call('EXISTS', slice.base) == 1
  end
  return slice.exists and call('HGET', findBucket(slice, identity), identity)
end

local function pack(slice, digest, ms, sequence)
  -- Caches the packed time, because many entries of a call share it.
  if slice.ms ~= ms then
    local since = ms - slice.start
    slice.ms, slice.isOutside = ms, since < 0 or since >= 4294967296
    slice.time = slice.isOutside and packInt('>I6', ms) or packInt('>I4', since)
  end
  if sequence < 256 then
    return digest .. slice.time .. ((sequence > 0 or slice.isOutside) and char(sequence) or '')
  end
  return digest .. slice.time .. packInt((sequence >= 65536 or slice.isOutside) and '>I4' or '>I2', sequence)
end

-- Returns digest, milliseconds and sequence number of a stored value.
local function unpackFrom(slice, value)
  local bytes = #value - DIGEST
  local isAbsolute = bytes == 7 or bytes == 10
  local head = isAbsolute and 6 or 4
  local ms = unpackInt('>I' .. head, value, DIGEST + 1)
  local sequence = bytes > head and unpackInt('>I' .. bytes - head, value, DIGEST + head + 1) or 0
  return sub(value, 1, DIGEST), isAbsolute and ms or slice.start + ms, sequence
end

-- Returns digest, milliseconds and sequence number of the most recent entry with this identity. Returns nil if that entry is
-- older than the window. With `first` = 2 the newest slice is skipped.
local function findNewest(view, policy, identity, first)
  local slices, others = view.slices, view.others
  local digest, ms, sequence
  for n = first, #slices do
    local found = slices[n].exists ~= false and findIn(slices[n], identity)
    if found then
      digest, ms, sequence = unpackFrom(slices[n], found)
      break
    end
  end
  for n = 1, #others do
    local found = others[n].exists ~= false and findIn(others[n], identity)
    if found then
      local otherDigest, otherMs, otherSequence = unpackFrom(others[n], found)
      if not ms or otherMs > ms then
        digest, ms, sequence = otherDigest, otherMs, otherSequence
      end
    end
  end
  if ms and now - ms < policy.window then
    return digest, ms, sequence
  end
end

-- Returns digest and entry id of the event with this identity, or nil if it is not remembered.
local function recall(view, policy, identity)
  local digest, ms, sequence = findNewest(view, policy, identity, 1)
  if digest then
    return digest, format('%.0f-%.0f', ms, sequence)
  end
end

-- Number of claims so far. The bucket size is checked at every fourth claim, which is enough to keep buckets small. The number
-- starts at the current microseconds, so that a sender cannot predict which claims are checked.
local claimCount = tonumber(time[2])
-- Slice and identity of the last claim whose entry has not been appended yet. unclaim() removes that claim.
local claimedSlice, claimedIdentity

local function store(slice, identity, digest, ms, sequence)
  call('HSET', findBucket(slice, identity), identity, pack(slice, digest, ms, sequence))
end

-- Returns digest and entry id like `recall` if the identity is known. Otherwise stores it for the entry that is about to be
-- appended, and returns nil. HSETNX does both in one command on the newest slice.
local function recallOrClaim(memory, policy, identity, digest, ms, sequence)
  local view = memory.views[policy.text] or openView(memory, policy)
  local slice = view.slices[1]
  if findNewest(view, policy, identity, 2) then
    return recall(view, policy, identity)
  end
  if view.noteOwn or view.noteDefault then
    noteSlicings(memory, policy, view)
  end
  if not slice.count then
    local count = call('HGET', slice.base, 'n')
    setCount(slice, tonumber(count or 1))
    slice.exists = count and true or nil
  end
  local bucket = findBucket(slice, identity)
  if call('HSETNX', bucket, identity, pack(slice, digest, ms, sequence)) == 0 then
    slice.exists = true
    local knownDigest, knownId = recall(view, policy, identity)
    if knownDigest then
      return knownDigest, knownId
    end
    -- The identity is stored, but its time is outside the window, for example because the clock was changed.
    store(slice, identity, digest, ms, sequence)
  end
  claimedSlice, claimedIdentity = slice, identity
  claimCount = claimCount + 1
  if not slice.exists or claimCount % 4 == 0 then
    local held = call('HLEN', bucket)
    if held == 1 and not slice.exists then
      call('PEXPIREAT', bucket, format('%d', slice.expiresAt))
    elseif held > BUCKET_IDS then
      splitNext(slice)
    end
    slice.exists = true
  end
end

local function differs(digest, other)
  return digest ~= other and digest ~= ANY_DIGEST and other ~= ANY_DIGEST
end

-- Removes the last claim after its entry could not be appended.
local function unclaim()
  if claimedSlice then
    call('HDEL', findBucket(claimedSlice, claimedIdentity), claimedIdentity)
    -- Redis deletes an empty hash together with its expiry, so `exists` is unknown again.
    claimedSlice.exists, claimedSlice = nil, nil
  end
end
