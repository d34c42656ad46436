-- Forgets decisions that have been counted.
--
-- KEYS[1] = open decisions: sorted set of names, score = when they are due, in ms
-- KEYS[2] = hash of name to content, and of a name and an item's place to nothing once it is counted
-- ARGV[1…] = for each decision its name and its number of items
-- returns 1

for at = 1, #ARGV, 2 do
    local name = ARGV[at]
    redis.call('ZREM', KEYS[1], name)
    redis.call('HDEL', KEYS[2], name)
    for place = 0, tonumber(ARGV[at + 1]) - 1 do
        redis.call('HDEL', KEYS[2], name .. struct.pack('<I2', place))
    end
end
return 1
