-- Reads and stores the highest epoch of a pull source that each topic has seen (hash {<topic>}:e, field s<source>). Included by
-- other scripts. Uses `call` and KEYS. Defines highestEpoch and stampEpochs. Both process the topics in KEYS from index `first`
-- on.
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
