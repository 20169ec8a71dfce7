-- The epochs that topics have seen of a pull source; a fragment. It expects `call` and KEYS, and defines highestEpoch and
-- stampEpochs over the topics from the given place in KEYS on. {<topic>}:e, field s<source>, as source-position.lua reads it.
local function epochsKey(topic)
  return '{' .. topic .. '}:e'
end

local function highestEpoch(source, first)
  local highest = 0
  for place = first, #KEYS do
    highest = math.max(highest, tonumber(call('HGET', epochsKey(KEYS[place]), 's' .. source) or 0))
  end
  return highest
end

local function stampEpochs(source, epoch, first)
  for place = first, #KEYS do
    call('HSET', epochsKey(KEYS[place]), 's' .. source, string.format('%d', epoch))
  end
end
