-- Erases all sums of a recommender on a shard, a part at a time.
--
-- KEYS[1] = open sums: set of names of blocks; a block lies under this key followed by its name
-- KEYS[2] = own sums: set of principals; a principal's sums lie under this key followed by it
-- KEYS[3] = set of the numbers of releases whose sums are set aside; this key followed by a number
--           and a colon is a directory like KEYS[1]
-- KEYS[4] = counts of records
-- KEYS[5] = number of the last release that was frozen
-- KEYS[6] = open decisions
-- KEYS[7] = contents of open decisions
-- KEYS[8] = erasures of own sums
-- ARGV[1] = how many blocks and principals to erase at most
-- returns 1 if none is left, 0 if there are more

local most = tonumber(ARGV[1])
most = most - erase_names(KEYS[1], most)
if most > 0 then
    most = most - erase_names(KEYS[2], most)
end
for _, number in ipairs(redis.call('SMEMBERS', KEYS[3])) do
    if most > 0 then
        most = most - erase_names(KEYS[3] .. number .. ':', most)
    end
    if most > 0 then
        redis.call('SREM', KEYS[3], number)
    end
end
if most <= 0 then
    return 0
end
redis.call('UNLINK', KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8])
return 1
