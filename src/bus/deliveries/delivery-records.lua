-- The delivery records of one organization; a fragment that other scripts include. It expects `call`, and defines
-- `openDeliveryRecords(bytes)`.
--
-- All keys begin with that of the bytes less its last letter, inlet:{d.<organization>}: and one tag:
--   b             hash: bytes by channel, "t" in all
--   x:<channel>   sorted set: "<record> <bytes> <status> <request id or ->" by arrival (ms)
--   r:<record>    hash: m the record (JSON), i what its paths yielded (JSON), b its body in base64
--   g:<channel>   string: until it ends nothing is written, for it may have been deleted
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

  function store.partsOf(member)
    return string.match(member, '^(%S+) (%d+)')
  end

  -- Removes the members that a test chooses; answers what is left of them and its bytes.
  function store.removeWhere(channel, isChosen)
    local index = store.index(channel)
    local left, held = {}, 0
    for _, member in ipairs(call('ZRANGE', index, 0, -1)) do
      local id, size = store.partsOf(member)
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

  -- Notes what a channel holds now; answers what others hold.
  function store.others(channel)
    return tonumber(call('HGET', bytes, 't') or 0) - tonumber(call('HGET', bytes, channel) or 0)
  end

  function store.note(channel, others, held)
    if held > 0 then
      call('HSET', bytes, channel, held)
    else
      call('HDEL', bytes, channel)
    end
    call('HSET', bytes, 't', others + held)
  end

  return store
end
