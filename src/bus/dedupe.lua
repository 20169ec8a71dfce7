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
local pack, unpackInt = struct.pack, struct.unpack
local IDENTITY, DIGEST = 22, 11
-- Redis keeps a hash of up to 128 fields as a listpack. A bucket that passes this makes its slice split one bucket; those whose
-- turn is still to come go on growing, so that the limit lies well below.
local BUCKET_IDS = 88
local DEFAULT_SLICING = 'r'
local DEFAULT_WINDOW = 86400000

-- From 165 ms ("a") to 8 days ("w"); the default's is 6 hours. A window is at most four slices long.
local function sliceLength(slicing)
  return DEFAULT_WINDOW / 4 * 2 ^ (string.byte(slicing) - string.byte(DEFAULT_SLICING))
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

local SIX_BITS = {}
local function hashOf(identity)
  if not SIX_BITS[65] then
    local alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    for i = 1, 64 do
      SIX_BITS[string.byte(alphabet, i)] = i - 1
    end
  end
  local a, b, c, d, e = string.byte(identity, 1, 5)
  return (((SIX_BITS[a] * 64 + SIX_BITS[b]) * 64 + SIX_BITS[c]) * 64 + SIX_BITS[d]) * 64 + SIX_BITS[e]
end

local function roundOf(count)
  local size = 1
  while size * 2 <= count do
    size = size * 2
  end
  return size
end

local function bucketOf(slice, identity)
  local count = slice.count
  if count == 1 then
    return slice.base
  end
  local hash, round = hashOf(identity), roundOf(count)
  local bucket = hash % (round * 2)
  if bucket >= count then
    bucket = bucket - round
  end
  return bucket == 0 and slice.base or slice.base .. '.' .. format('%x', bucket)
end

local function splitNext(slice)
  local count = slice.count
  local round = roundOf(count)
  local from = count - round
  local fromKey = from == 0 and slice.base or slice.base .. '.' .. format('%x', from)
  local toKey = slice.base .. '.' .. format('%x', count)
  local fields = call('HGETALL', fromKey)
  local kept, moved, gone = 0, {}, {}
  for i = 1, #fields, 2 do
    local field = fields[i]
    if #field == IDENTITY and hashOf(field) % (round * 2) == count then
      moved[#moved + 1] = field
      moved[#moved + 1] = fields[i + 1]
      gone[#gone + 1] = field
    else
      kept = kept + 1
    end
  end
  if moved[1] then
    call('HSET', toKey, unpack(moved))
    call('PEXPIREAT', toKey, format('%d', slice.expiresAt))
    call('HDEL', fromKey, unpack(gone))
  end
  slice.count = count + 1
  call('HSET', slice.base, 'n', slice.count)
  if from == 0 and kept == 0 then
    call('PEXPIREAT', slice.base, format('%d', slice.expiresAt))
  end
end

local function findIn(slice, identity)
  if slice.isGone then
    return false
  end
  if not slice.count then
    local found = call('HMGET', slice.base, 'n', identity)
    slice.count = tonumber(found[1] or 1)
    slice.isUnsure = not (found[1] or found[2])
    if slice.count == 1 then
      return found[2]
    end
    return call('HGET', bucketOf(slice, identity), identity)
  end
  if slice.isUnsure then
    slice.isUnsure = false
    if call('EXISTS', slice.base) == 0 then
      slice.isGone = true
      return false
    end
  end
  return call('HGET', bucketOf(slice, identity), identity)
end

local function packEntry(slice, entryId)
  local dash = find(entryId, '-', 1, true)
  local ms, sequence = tonumber(sub(entryId, 1, dash - 1)), tonumber(sub(entryId, dash + 1))
  local since = ms - slice.start
  if since < 0 or since >= 4294967296 then
    return pack('>I6', ms) .. pack(sequence < 256 and '>I1' or '>I4', sequence)
  end
  if sequence == 0 then
    return pack('>I4', since)
  end
  return pack('>I4', since) .. pack(sequence < 256 and '>I1' or sequence < 65536 and '>I2' or '>I4', sequence)
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
  for _, slice in ipairs(view.slices) do
    local found = findIn(slice, identity)
    if found then
      digest = sub(found, 1, DIGEST)
      ms, sequence = unpackEntry(slice, found)
      break
    end
  end
  for _, slice in ipairs(view.others) do
    local found = findIn(slice, identity)
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

local function remember(view, identity, digest, entryId)
  local slice = view.slices[1]
  slice.isGone, slice.isUnsure = false, false
  local bucket = bucketOf(slice, identity)
  call('HSET', bucket, identity, digest .. packEntry(slice, entryId))
  local held = call('HLEN', bucket)
  if held == 1 then
    call('PEXPIREAT', bucket, format('%d', slice.expiresAt))
  elseif held > BUCKET_IDS then
    splitNext(slice)
  end
end
