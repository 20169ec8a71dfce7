-- The memory of ids; a fragment of publish.lua. It expects `call`, `time`, `now` (ms) and a memory {prefix, notes, views, slices} of a topic
-- or of signed bytes, and defines viewOf, recall, recallOrClaim, store and unclaim.
--
-- An id is remembered in the slice of time in which it was published. A slice is a few small hashes that grow by linear hashing and
-- expire at once: {<topic>}:<slicing, none for the default's><slice modulo 8>, from the second on with .<bucket, hexadecimal>. Field "n" of
-- the first one counts them; absent: there is only that one. The names are short and the values packed because a topic that seldom
-- hears of anything has a hash for each id. A slice is gone before its name comes again: it lives for five slices at most.
-- Field: the identity. Value: the digest (11), then milliseconds since the slice began (4 bytes) and the sequence number (0, 1, 2 or 4
-- bytes); for an entry outside these bounds, as after a clock was set back, its milliseconds (6) and sequence number (1 or 4).
-- {<topic>}:e notes as w<slicing> until when (ms) a slicing may matter; only topics that ever used another than the default's do.
local packInt, unpackInt, byte, char = struct.pack, struct.unpack, string.byte, string.char
local IDENTITY, DIGEST = 22, 11
-- Redis keeps a hash of up to 128 fields as a listpack. A bucket that passes this makes its slice split one bucket; those whose
-- turn is still to come go on growing, so that the limit lies well below.
local BUCKET_IDS = 80
-- A bucket that someone has filled on purpose would keep Redis from the others while it is split: its slice stops growing.
local MOST_MOVED = 1000
local DEFAULT_SLICING = 'r'
local DEFAULT_WINDOW = 86400000

-- From 165 ms ("a") to 8 days ("w"); the default's is 6 hours. A window is at most four slices long.
local function sliceLength(slicing)
  return DEFAULT_WINDOW / 4 * 2 ^ (byte(slicing) - byte(DEFAULT_SLICING))
end

-- Of a slice: its first bucket; milliseconds of its begin and end; number of buckets and the power of two at or below it, once known; the
-- bucket that an identity was last looked for in; whether it exists, nil while that is not known; the time of the entry packed last. Ids
-- come to the newest one alone: older ones are left out where they do not exist.
local function addSlices(slices, topic, slicing, window)
  local length = sliceLength(slicing)
  local name = topic.prefix .. (slicing == DEFAULT_SLICING and '' or slicing)
  local newestIndex = floor(now / length)
  for index = newestIndex, floor((now - window) / length), -1 do
    local base = name .. index % 8
    local slice, isOlder = topic.slices[base], index < newestIndex
    if slice == nil then
      -- All fields here: a table that grows is made anew again and again.
      slice = (not isOlder or call('EXISTS', base) == 1) and {
        base = base, start = floor(index * length), expiresAt = (index + 1) * length + window, exists = isOlder or nil,
        count = nil, round = nil, asked = nil, answer = nil, ms = nil, time = nil, isOutside = nil,
      }
      topic.slices[base] = slice
    end
    if slice then
      slices[#slices + 1] = slice
    end
  end
end

-- How a policy sees a topic: the slices of its own slicing, newest first, then those of slicings that were in use before the
-- window was changed.
local function viewOf(topic, policy)
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
  -- Those of other policies in this call were made without what is noted now.
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
  slice.count, slice.round, slice.asked = count, round, nil
end

-- Of 30 bits of what is a hash already: its low bits are spread as evenly as theirs.
local function hashOf(identity)
  local a, b, c, d, e = byte(identity, 1, 5)
  return (((a * 37 + b) * 37 + c) * 37 + d) * 37 + e
end

local function keyOf(slice, bucket)
  return bucket == 0 and slice.base or format('%s.%x', slice.base, bucket)
end

local function bucketOf(slice, identity)
  if slice.count == 1 then
    return slice.base
  end
  -- What is not found is remembered next.
  if slice.asked == identity then
    return slice.answer
  end
  local bucket = hashOf(identity) % (slice.round * 2)
  if bucket >= slice.count then
    bucket = bucket - slice.round
  end
  local key = keyOf(slice, bucket)
  slice.asked, slice.answer = identity, key
  return key
end

-- Every bucket below the count exists, or nothing would tell that it has yet to be given its end.
local function splitNext(slice)
  local count, round, till = slice.count, slice.round, format('%d', slice.expiresAt)
  local from = count - round
  local fromKey, toKey = keyOf(slice, from), keyOf(slice, count)
  if call('HLEN', fromKey) > MOST_MOVED then
    return
  end
  local fields = call('HGETALL', fromKey)
  local moved, gone, size, buckets = {}, {}, 0, round * 2
  for i = 1, #fields, 2 do
    local field = fields[i]
    if #field == IDENTITY and hashOf(field) % buckets == count then
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

-- What a slice remembers of an identity.
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
  return slice.exists and call('HGET', bucketOf(slice, identity), identity)
end

local function pack(slice, digest, ms, sequence)
  -- Many entries of a call share their time.
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

-- Answers digest, milliseconds and sequence number.
local function unpackFrom(slice, value)
  local bytes = #value - DIGEST
  local isAbsolute = bytes == 7 or bytes == 10
  local head = isAbsolute and 6 or 4
  local ms = unpackInt('>I' .. head, value, DIGEST + 1)
  local sequence = bytes > head and unpackInt('>I' .. bytes - head, value, DIGEST + head + 1) or 0
  return sub(value, 1, DIGEST), isAbsolute and ms or slice.start + ms, sequence
end

-- The entry remembered last; nothing where that is past the window. The newest slice is left out where `first` is 2.
local function newest(view, policy, identity, first)
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

-- Answers digest and entry id of what is remembered.
local function recall(view, policy, identity)
  local digest, ms, sequence = newest(view, policy, identity, 1)
  if digest then
    return digest, format('%.0f-%.0f', ms, sequence)
  end
end

-- Looking at one bucket of four keeps their sizes as well; which ones is for no sender to foresee.
local turn = tonumber(time[2])
-- What was remembered last, for an entry that is not there yet.
local claimedIn, claimed

local function store(slice, identity, digest, ms, sequence)
  call('HSET', bucketOf(slice, identity), identity, pack(slice, digest, ms, sequence))
end

-- Remembers, where nothing is remembered, an entry that is about to be; else answers as `recall` does. One look at the newest slice does
-- both.
local function recallOrClaim(memory, policy, identity, digest, ms, sequence)
  local view = memory.views[policy.text] or viewOf(memory, policy)
  local slice = view.slices[1]
  if newest(view, policy, identity, 2) then
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
  local bucket = bucketOf(slice, identity)
  if call('HSETNX', bucket, identity, pack(slice, digest, ms, sequence)) == 0 then
    slice.exists = true
    local knownDigest, knownId = recall(view, policy, identity)
    if knownDigest then
      return knownDigest, knownId
    end
    -- Its time is past the window, as after a clock was set.
    store(slice, identity, digest, ms, sequence)
  end
  claimedIn, claimed = slice, identity
  turn = turn + 1
  if not slice.exists or turn % 4 == 0 then
    local held = call('HLEN', bucket)
    if held == 1 and not slice.exists then
      call('PEXPIREAT', bucket, format('%d', slice.expiresAt))
    elseif held > BUCKET_IDS then
      splitNext(slice)
    end
    slice.exists = true
  end
end

-- Forgets what was claimed for an entry that could not be appended.
local function unclaim()
  if claimedIn then
    call('HDEL', bucketOf(claimedIn, claimed), claimed)
    -- With its last field a hash is gone, and its end with it.
    claimedIn.exists, claimedIn = nil, nil
  end
end
