-- Erases the sums that were set aside for a release on a shard, a part at a time.
--
-- KEYS[1] = sums set aside: set of names of blocks; a block lies under this key followed by its name
-- KEYS[2] = set of the numbers of releases whose sums are set aside
-- ARGV[1] = number of the release
-- ARGV[2] = how many blocks to erase at most
-- returns 1 if none is left, 0 if there are more

if erase_names(KEYS[1], ARGV[2]) == tonumber(ARGV[2]) then
    return 0
end
redis.call('SREM', KEYS[2], ARGV[1])
return 1
