-- Delivery records of one organization. Included by other scripts. Uses `call`. Defines openDeliveryRecords(bytes), where `bytes`
-- is the key inlet:{d.<organization>}:b.
--
-- All keys share the prefix inlet:{d.<organization>}: and end with:
--   - hash b: bytes per channel, and "t" for the total
--   - sorted set x:<channel>: "<record> <bytes> <status> <request id or ->" by arrival (ms)
--   - hash r:<record>: m record (JSON), i recorded items (JSON), b body (base64)
--   - string g:<channel>: guard. While it exists, gateways drop records of the channel, because they may have been deleted.
local function openDeliveryRecords(bytes)
  local prefix = string.sub(bytes, 1, -2)
  local store = {}

  function store.index(channel)
    return prefix .. 'x:' .. channel
  end

  function store.record(id)
    return prefix .. 'r:' .. id
  end

  function store.guard(channel)
    return prefix .. 'g:' .. channel
  end

  function store.parseMember(member)
    return string.match(member, '^(%S+) (%d+)')
  end

  -- Removes the records whose ids `isChosen` accepts. Returns the remaining index members and their total bytes.
  function store.removeWhere(channel, isChosen)
    local index = store.index(channel)
    local left, held = {}, 0
    for _, member in ipairs(call('ZRANGE', index, 0, -1)) do
      local id, size = store.parseMember(member)
      if isChosen(id) then
        call('ZREM', index, member)
        call('UNLINK', store.record(id))
      else
        left[#left + 1] = member
        held = held + tonumber(size)
      end
    end
    return left, held
  end

  function store.bytesOfOthers(channel)
    return tonumber(call('HGET', bytes, 't') or 0) - tonumber(call('HGET', bytes, channel) or 0)
  end

  -- Stores the bytes of a channel (`held`) and the new total. `others` is the result of `bytesOfOthers`.
  function store.saveBytes(channel, others, held)
    if held > 0 then
      call('HSET', bytes, channel, held)
    else
      call('HDEL', bytes, channel)
    end
    call('HSET', bytes, 't', others + held)
  end

  return store
end
