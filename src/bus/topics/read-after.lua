#!lua flags=no-writes
-- Reads the entries after an id in one stream, and the counters that show whether entries were removed.
--
-- KEYS:  1. stream
-- ARGV:
--   1. id after which to read, or $ for the last entry
--   2. maximum entries
--   3. maximum bytes; the entry that exceeds them is the last one
--
-- Reply:
--   1. number of entries ever appended
--   2. number of entries stored
--   3. greatest id deleted with XDEL
--   4. id of the last entry
--   5. 1 if there may be more entries, else 0
--   6. id of the first stored entry; if there is none, that of the last entry
--   then per entry: id, fields
local facts = { ['entries-added'] = 0, ['length'] = 0, ['max-deleted-entry-id'] = '0-0', ['last-generated-id'] = '0-0', ['first-entry'] = false }
local info = redis.pcall('XINFO', 'STREAM', KEYS[1])
-- A stream without entries may not exist.
if not info.err then
  for at = 1, #info, 2 do
    if facts[info[at]] ~= nil then
      facts[info[at]] = info[at + 1]
    end
  end
end
local first = facts['first-entry'] and facts['first-entry'][1] or facts['last-generated-id']
local reply = { facts['entries-added'], facts['length'], facts['max-deleted-entry-id'], facts['last-generated-id'], 0, first }
local after = ARGV[1]
if after == '$' then
  return reply
end
local entries_left, bytes_left = tonumber(ARGV[2]), tonumber(ARGV[3])
while true do
  -- Reads one entry at a time, because the size of the next entry is unknown.
  local entry = redis.call('XRANGE', KEYS[1], '(' .. after, '+', 'COUNT', 1)[1]
  if not entry then
    return reply
  end
  if entries_left <= 0 or bytes_left <= 0 then
    reply[5] = 1
    return reply
  end
  after = entry[1]
  entries_left = entries_left - 1
  for _, field in ipairs(entry[2]) do
    bytes_left = bytes_left - #field
  end
  reply[#reply + 1] = entry[1]
  reply[#reply + 1] = entry[2]
end
