-- Reads the sums that were set aside for a release on a shard.
--
-- KEYS[1] = sums set aside: set of names of blocks; a block lies under this key followed by its name
-- returns {name, sums, …}

local found = {}
for _, name in ipairs(redis.call('SMEMBERS', KEYS[1])) do
    found[#found + 1] = name
    found[#found + 1] = redis.call('GET', KEYS[1] .. name)
end
return found
