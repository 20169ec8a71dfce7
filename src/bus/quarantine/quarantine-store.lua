-- Quarantine of one organization. Included by other scripts. Uses `call`, `time` (reply of TIME) and `now` (ms).
-- Defines openQuarantineStore(budget), where `budget` is the key inlet:{q.<organization>}:b.
--
-- All keys share the prefix and hash tag inlet:{q.<organization>}: so one script can keep the budgets exact.
--
-- Key b, a hash:
--   - "t": total bytes
--   - "<channel>:a": bytes of records stored for days
--   - "<channel>:<reason>": bytes of records of which only the newest are kept
--   - "<channel>:over": newest pause of the channel whose buffer has been emptied
--   - "<channel>:closes": time (ms) until which a pause buffer is closed (pause-end.lua)
--
-- Key r:<record>, a hash:
--   - s     record (JSON)
--   - ch    channel
--   - f, l  first and last arrival (ms)
--   - n     number of arrivals
--   - x     index
--   - a     account: the field of b to which the record's bytes are charged
--   - d     delivery
--   - i     field in that delivery
--   - z     bytes
--   - h     hash of the route key for which an intake holds the item
--
-- Key d:<channel>:<digest>, a hash that is deleted with its last record:
--   - m: method, headers and so on (JSON)
--   - b: body
--   - c: account: the field of b to which the delivery's bytes are charged
--   - z: bytes
--   - o: number of records stored for days
--   - "<item, or whole>.<reason>": id of a record. For a held item, ".<hash>" of its route key follows.
--
-- Key x:<channel>:<index>, a sorted set: record by first arrival (µs). <index> is a reason, or "<reason>:last" for records of
-- which only the newest are kept.
--
-- Key h:<channel>:<hash>, a sorted set: records that an intake holds for a route key, by first arrival (µs).
local DELIVERY_FIELDS = 5
local RECORD_OVERHEAD = 600
local DELIVERY_OVERHEAD = 400

local function openQuarantineStore(budget)
  local prefix = string.sub(budget, 1, -2)
  local store = {}

  local function charge(account, bytes)
    if tonumber(call('HINCRBY', budget, account, bytes)) <= 0 then
      call('HDEL', budget, account)
    end
  end

  local function moveDelivery(delivery, from, to, bytes)
    charge(from, -bytes)
    charge(to, bytes)
    call('HSET', delivery, 'c', to)
  end

  -- Returns the account of one of the records that still point to the delivery.
  local function accountOfRest(delivery)
    for _, field in ipairs(call('HKEYS', delivery)) do
      if string.find(field, '.', 1, true) then
        return call('HGET', prefix .. 'r:' .. call('HGET', delivery, field), 'a')
      end
    end
  end

  -- Also deletes the delivery of the record if no other record needs it. Returns 1 if the record existed, else 0.
  function store.drop(id)
    local key = prefix .. 'r:' .. id
    local record = call('HMGET', key, 'ch', 'x', 'a', 'd', 'i', 'z', 'h')
    local channel, index, account, delivery, field, bytes, held = unpack(record)
    if not channel then
      return 0
    end
    call('ZREM', prefix .. 'x:' .. channel .. ':' .. index, id)
    if held then
      call('ZREM', prefix .. 'h:' .. channel .. ':' .. held, id)
    end
    call('UNLINK', key)
    charge(account, -bytes)
    charge('t', -bytes)
    local deliveryKey = prefix .. 'd:' .. delivery
    call('HDEL', deliveryKey, field)
    local held = call('HMGET', deliveryKey, 'c', 'z', 'o')
    if call('HLEN', deliveryKey) == DELIVERY_FIELDS then
      call('UNLINK', deliveryKey)
      charge(held[1], -held[2])
      charge('t', -held[2])
    elseif account == channel .. ':a' and call('HINCRBY', deliveryKey, 'o', -1) == 0 then
      moveDelivery(deliveryKey, held[1], accountOfRest(deliveryKey), held[2])
    end
    return 1
  end

  -- Deletes up to `most` records of an index that arrived before `beforeMs`. Returns the number of deleted records.
  function store.dropOlder(index, beforeMs, most)
    local ids = call('ZRANGEBYSCORE', prefix .. 'x:' .. index, '-inf', '(' .. string.format('%d', beforeMs * 1000), 'LIMIT', 0, most)
    for _, id in ipairs(ids) do
      store.drop(id)
    end
    return #ids
  end

  -- Deletes up to `most` records of a channel that are older than `keepMs`. Returns the number of deleted records.
  function store.expire(channel, reasons, keepMs, most)
    local removed = 0
    for reason in string.gmatch(reasons, '%S+') do
      if removed < most then
        removed = removed + store.dropOlder(channel .. ':' .. reason, now - keepMs, most - removed)
      end
    end
    return removed
  end

  -- Returns the bytes that a write would add to the channel's account and to the total.
  local function computeBytes(write)
    local deliveryKey = prefix .. 'd:' .. write.delivery
    write.isNew = call('EXISTS', deliveryKey) == 0
    write.deliveryBytes = write.isNew and #write.meta + #write.body + DELIVERY_OVERHEAD or 0
    local all, newest, keepsAll = 0, 0, false
    for _, item in ipairs(write.items) do
      item.known = not write.isNew and call('HGET', deliveryKey, item.field) or nil
      if not item.known then
        item.bytes = #item.record + RECORD_OVERHEAD
        if item.keepsAll then
          all = all + item.bytes
          keepsAll = true
        else
          newest = newest + item.bytes
        end
      end
    end
    local delivery = write.deliveryBytes
    if keepsAll and not write.isNew then
      local held = call('HMGET', deliveryKey, 'c', 'z')
      if held[1] ~= write.channel .. ':a' then
        all = all + tonumber(held[2])
      end
    end
    return all + (keepsAll and delivery or 0), all + newest + delivery
  end

  -- Must be called before the first write. Returns "channel" or "organization" if the write would exceed that budget, else nil. If so,
  -- deletes expired records of the channel first and checks again.
  function store.check(write)
    local limits = write.limits
    local account = write.channel .. ':a'
    local forChannel, inAll = computeBytes(write)
    local function findExceeded()
      local held = call('HMGET', budget, account, 't')
      if forChannel > 0 and tonumber(held[1] or 0) + forChannel > limits.channelBytes then
        return 'channel'
      end
      if inAll > 0 and tonumber(held[2] or 0) + inAll > limits.organizationBytes then
        return 'organization'
      end
    end
    local exceeded = findExceeded()
    if exceeded and store.expire(write.channel, limits.reasons, limits.keepMs, 1000) > 0 then
      forChannel, inAll = computeBytes(write)
      exceeded = findExceeded()
    end
    return exceeded
  end

  local function keepNewest(channel, reason, limits)
    local index = prefix .. 'x:' .. channel .. ':' .. reason .. ':last'
    local account = channel .. ':' .. reason
    while true do
      local held = call('ZCARD', index)
      local isOver = held > limits.newestItems or tonumber(call('HGET', budget, account) or 0) > limits.newestBytes
      if not isOver or held <= 1 then
        return
      end
      store.drop(call('ZRANGE', index, 0, 0)[1])
    end
  end

  -- Appends the record id of each item to `answers`.
  function store.write(write, answers)
    local deliveryKey = prefix .. 'd:' .. write.delivery
    local first, last, arrivals, score = now, now, 1, string.format('%d', time[1] * 1000000 + time[2])
    if write.redriven then
      -- A redrive is not an arrival, so the record of an item that fails for another reason keeps the arrivals of the redriven record.
      local from = call('HMGET', prefix .. 'r:' .. write.redriven, 'f', 'l', 'n')
      if from[1] then
        first, last, arrivals, score = tonumber(from[1]), tonumber(from[2]), tonumber(from[3]), from[1] .. '000'
      end
    end
    local channel = write.channel
    local account = channel .. ':a'
    local isTrimmed = {}
    for _, item in ipairs(write.items) do
      -- Does not use `item.known`, because one write can contain the same item twice.
      local id = call('HGET', deliveryKey, item.field)
      if id then
        if not write.redriven then
          call('HINCRBY', prefix .. 'r:' .. id, 'n', 1)
          call('HSET', prefix .. 'r:' .. id, 'l', string.format('%d', now))
        end
      else
        id = item.id
        local itemAccount = item.keepsAll and account or channel .. ':' .. item.reason
        local index = item.keepsAll and item.reason or item.reason .. ':last'
        if write.isNew then
          write.isNew = false
          call('HSET', deliveryKey, 'm', write.meta, 'b', write.body, 'c', itemAccount, 'z', write.deliveryBytes, 'o', 0)
          charge(itemAccount, write.deliveryBytes)
          charge('t', write.deliveryBytes)
        end
        call('HSET', prefix .. 'r:' .. id, 's', item.record, 'ch', channel, 'f', string.format('%d', first),
          'l', string.format('%d', last), 'n', arrivals, 'x', index, 'a', itemAccount, 'd', write.delivery, 'i', item.field, 'z', item.bytes)
        call('HSET', deliveryKey, item.field, id)
        call('ZADD', prefix .. 'x:' .. channel .. ':' .. index, score, id)
        if write.held then
          call('HSET', prefix .. 'r:' .. id, 'h', write.held)
          call('ZADD', prefix .. 'h:' .. channel .. ':' .. write.held, score, id)
        end
        charge(itemAccount, item.bytes)
        charge('t', item.bytes)
        if item.keepsAll then
          if call('HINCRBY', deliveryKey, 'o', 1) == 1 then
            local held = call('HMGET', deliveryKey, 'c', 'z')
            if held[1] ~= account then
              moveDelivery(deliveryKey, held[1], account, held[2])
            end
          end
        else
          isTrimmed[item.reason] = true
        end
      end
      answers[#answers + 1] = id
    end
    for reason in pairs(isTrimmed) do
      keepNewest(channel, reason, write.limits)
    end
  end

  return store
end
