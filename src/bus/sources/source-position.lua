-- Checks and commits the position of a pull source. Included by publish.lua. Uses `call`, `now`, `reject`, `at`, KEYS, ARGV and
-- topics {key, prefix, notes}. Defines readPosition (moves `at`), checkCursor, commitCursor, checkEpoch and stampEpoch.
--
-- Each topic stores the highest epoch that it has seen of a source: hash {<topic>}:e, field s<source>.
-- The cursor is a hash: e epoch, v version, c value. source-take-over.lua creates it, and it is deleted with its channel.
-- Only the epoch that took over last may commit the cursor, by compare-and-set on the version.
local function readPosition()
  local place = tonumber(ARGV[at + 3])
  local position = {
    field = 's' .. ARGV[at],
    epoch = tonumber(ARGV[at + 1]),
    version = tonumber(ARGV[at + 2]),
    cursor = place ~= 0 and KEYS[place < 0 and -place or place],
  }
  at = at + 4
  if place < 0 then
    position.commits = ARGV[at]
    at = at + 1
  end
  return position
end

local function checkCursor(position)
  local held = call('HMGET', position.cursor, 'e', 'v')
  if tonumber(held[1]) ~= position.epoch then
    reject('EPOCH', 'the epoch of the cursor is now ' .. (held[1] or 'none'))
  end
  if tonumber(held[2] or 0) ~= position.version then
    reject('CURSOR', 'the version of the cursor is now ' .. (held[2] or '0'))
  end
end

local function commitCursor(position)
  local version = format('%d', position.version + 1)
  if position.commits == '=' then
    call('HSET', position.cursor, 'v', version)
  else
    call('HSET', position.cursor, 'v', version, 'c', sub(position.commits, 2), 'u', format('%d', now))
  end
end

local function checkEpoch(topic, position)
  local held = topic.notes and topic.notes[position.field]
  if held and held > position.epoch then
    reject('EPOCH', topic.key .. ' has received a newer epoch: ' .. format('%d', held))
  end
end

local function stampEpoch(topic, position)
  topic.notes = topic.notes or {}
  if topic.notes[position.field] ~= position.epoch then
    topic.notes[position.field] = position.epoch
    call('HSET', topic.prefix .. 'e', position.field, format('%d', position.epoch))
  end
end
