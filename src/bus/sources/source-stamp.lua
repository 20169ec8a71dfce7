#!lua
-- Stamps an epoch on topics of a pull source, unless one of them has seen a higher one.
-- KEYS: topics
-- ARGV: source, epoch
-- Reply: the highest epoch that they had seen; they are stamped where it is no higher than the one given
local call = redis.call
-- @include ./source-epochs.lua
local source, epoch = ARGV[1], tonumber(ARGV[2])
local highest = highestEpoch(source, 1)
if highest <= epoch then
  stampEpochs(source, epoch, 1)
end
return string.format('%d', highest)
