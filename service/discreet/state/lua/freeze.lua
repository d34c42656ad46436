-- Sets what has gathered on a shard aside for a release, once.
--
-- KEYS[1] = number of the last release that was frozen
-- KEYS[2] = open sums: set of names of blocks; a block lies under this key followed by its name
-- KEYS[3] = sums set aside for this release, in the same form
-- KEYS[4] = set of the numbers of releases whose sums are set aside
-- KEYS[5] = counts: hash of principal to number of records since the last freeze
-- ARGV[1] = number of this release
-- returns how many blocks were set aside now; 0 if that was done before

if tonumber(redis.call('GET', KEYS[1]) or '0') >= tonumber(ARGV[1]) then
    return 0
end
local names = redis.call('SMEMBERS', KEYS[2])
if #names > 0 then
    for _, name in ipairs(names) do
        -- A name without a block, which no script leaves, must not end the script half way.
        redis.pcall('RENAME', KEYS[2] .. name, KEYS[3] .. name)
    end
    redis.call('RENAME', KEYS[2], KEYS[3])
    redis.call('SADD', KEYS[4], ARGV[1])
end
redis.call('UNLINK', KEYS[5])
redis.call('SET', KEYS[1], ARGV[1])
return #names
