-- Dedupe of one topic; a fragment of publish.lua. It expects `call`, `now` (ms) and a topic {key, prefix, notes, views, slices}, and
-- defines viewOf, noteSlicings, recall and remember.
--
-- An id is remembered in the slice of time in which it was published. A slice is a few small hashes that grow by linear hashing and
-- expire at once: {<topic>}:<slicing, none for the default's><slice modulo 8>, from the second on with .<bucket, hexadecimal>. Field "n" of
-- the first one counts them; absent: there is only that one. The names are short and the values packed because a topic that seldom
-- hears of anything has a hash for each id. A slice is gone before its name comes again: it lives for five slices at most.
-- Field: the identity. Value: the digest (11), then milliseconds since the slice began (4 bytes) and the sequence number (0, 1, 2 or 4
-- bytes); for an entry outside these bounds, as after a clock was set back, its milliseconds (6) and sequence number (1 or 4).
-- {<topic>}:e notes as w<slicing> until when (ms) a slicing may matter; only topics that ever used another than the default's do.
local pack, unpackInt, byte = struct.pack, struct.unpack, string.byte
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

local function addSlices(slices, topic, slicing, window)
  local length = sliceLength(slicing)
  local name = topic.prefix .. (slicing == DEFAULT_SLICING and '' or slicing)
  for index = floor(now / length), floor((now - window) / length), -1 do
    local base = name .. index % 8
    local slice = topic.slices[base]
    if not slice then
      slice = { base = base, start = floor(index * length), expiresAt = (index + 1) * length + window }
      topic.slices[base] = slice
    end
    slices[#slices + 1] = slice
  end
end

-- How a policy sees a topic: the slices of its own slicing, newest first, then those of slicings that were in use before the
-- window was changed.
local function viewOf(topic, policy)
  local view = topic.views[policy.text]
  if view then
    return view
  end
  view = { slices = {}, others = {} }
  topic.views[policy.text] = view
  addSlices(view.slices, topic, policy.slicing, policy.window)
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
      addSlices(view.others, topic, slicing, sliceLength(slicing) * 4)
    end
  end
  if not isDefault and not (notes and notes[own]) and not (notes and notes['w' .. DEFAULT_SLICING]) then
    local before = {}
    addSlices(before, topic, DEFAULT_SLICING, DEFAULT_WINDOW)
    for _, slice in ipairs(before) do
      if call('EXISTS', slice.base) == 1 then
        view.noteDefault = true
        view.others[#view.others + 1] = slice
      end
    end
  end
  view.noteOwn = shared and ((notes and notes[own]) or 0) < now + policy.window
  return view
end

local function noteSlicings(topic, policy, view)
  local notes = topic.notes or {}
  topic.notes = notes
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

-- Of 30 bits of what is a hash already: its low bits are spread as evenly as theirs.
local function hashOf(identity)
  local a, b, c, d, e = byte(identity, 1, 5)
  return (((a * 37 + b) * 37 + c) * 37 + d) * 37 + e
end

local function setCount(slice, count)
  local round = slice.round or 1
  while round * 2 <= count do
    round = round * 2
  end
  slice.count, slice.round, slice.asked = count, round, nil
end

local function keyOf(slice, bucket)
  return bucket == 0 and slice.base or slice.base .. '.' .. format('%x', bucket)
end

local function bucketOf(slice, identity)
  if slice.count == 1 then
    return slice.base
  end
  -- What is not found is remembered next.
  if slice.asked ~= identity then
    local bucket = hashOf(identity) % (slice.round * 2)
    slice.asked, slice.answer = identity, keyOf(slice, bucket < slice.count and bucket or bucket - slice.round)
  end
  return slice.answer
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

local function findIn(slice, identity)
  if not slice.count then
    local found = call('HMGET', slice.base, 'n', identity)
    setCount(slice, tonumber(found[1] or 1))
    slice.isUnsure = not (found[1] or found[2])
    if slice.count == 1 then
      return found[2]
    end
  elseif slice.isUnsure then
    slice.isUnsure = false
    if call('EXISTS', slice.base) == 0 then
      slice.isGone = true
      return false
    end
  end
  return call('HGET', bucketOf(slice, identity), identity)
end

local function packSequence(sequence, short)
  return pack(sequence < 256 and '>I1' or sequence < 65536 and short or '>I4', sequence)
end

local function packEntry(slice, entryId)
  -- Many entries of a call share their time.
  local head = slice.head
  if not head or sub(entryId, 1, #head) ~= head then
    head = sub(entryId, 1, find(entryId, '-', 1, true))
    local ms = tonumber(sub(head, 1, -2))
    local since = ms - slice.start
    slice.head, slice.isOutside = head, since < 0 or since >= 4294967296
    slice.packed = slice.isOutside and pack('>I6', ms) or pack('>I4', since)
  end
  local sequence = sub(entryId, #head + 1)
  if slice.isOutside then
    return slice.packed .. packSequence(tonumber(sequence), '>I4')
  end
  return sequence == '0' and slice.packed or slice.packed .. packSequence(tonumber(sequence), '>I2')
end

local function unpackEntry(slice, value)
  local bytes = #value - DIGEST
  local isAbsolute = bytes == 7 or bytes == 10
  local head = isAbsolute and 6 or 4
  local ms = unpackInt('>I' .. head, value, DIGEST + 1)
  local sequence = bytes > head and unpackInt('>I' .. bytes - head, value, DIGEST + head + 1) or 0
  return isAbsolute and ms or slice.start + ms, sequence
end

-- Answers digest and entry id of what is remembered; nothing where that is past the window.
local function recall(view, policy, identity)
  local digest, ms, sequence
  for n = 1, #view.slices do
    local slice = view.slices[n]
    local found = not slice.isGone and findIn(slice, identity)
    if found then
      digest = sub(found, 1, DIGEST)
      ms, sequence = unpackEntry(slice, found)
      break
    end
  end
  for n = 1, #view.others do
    local slice = view.others[n]
    local found = not slice.isGone and findIn(slice, identity)
    if found then
      local otherMs, otherSequence = unpackEntry(slice, found)
      if not ms or otherMs > ms then
        digest, ms, sequence = sub(found, 1, DIGEST), otherMs, otherSequence
      end
    end
  end
  if ms and now - ms < policy.window then
    return digest, format('%.0f-%.0f', ms, sequence)
  end
end

-- Looking at one bucket of four keeps their sizes as well; which ones is for no sender to foresee.
local turn = tonumber(time[2])
local function remember(view, identity, digest, entryId)
  local slice = view.slices[1]
  local bucket = bucketOf(slice, identity)
  call('HSET', bucket, identity, digest .. packEntry(slice, entryId))
  local mayBeNew = slice.isGone or slice.isUnsure
  slice.isGone, slice.isUnsure = false, false
  turn = turn + 1
  if mayBeNew or turn % 4 == 0 then
    local held = call('HLEN', bucket)
    if held == 1 and mayBeNew then
      call('PEXPIREAT', bucket, format('%d', slice.expiresAt))
    elseif held > BUCKET_IDS then
      splitNext(slice)
    end
  end
end
