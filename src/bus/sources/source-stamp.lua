#!lua
-- Stamps an epoch on topics of a pull source, unless one of them has already seen a higher epoch.
-- KEYS:  topics
-- ARGV:  source, epoch
-- Reply: the highest epoch that the topics had seen, as a string. If it is above the given epoch, no topic was stamped.
local call = redis.call
-- @include ./source-epochs.lua
local source, epoch = ARGV[1], tonumber(ARGV[2])
local highest = highestEpoch(source, 1)
if highest <= epoch then
  stampEpochs(source, epoch, 1)
end
return string.format('%d', highest)
