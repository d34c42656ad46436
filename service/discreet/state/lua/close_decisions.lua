-- Forgets decisions that have been counted.
--
-- KEYS[1] = open decisions: sorted set of names, score = when they are due, in ms
-- KEYS[2] = contents: hash of name to number of items (2 bytes) and content, and of a name and an
--           item's place (2 bytes) to the reward that is held for it, or "c" once it is counted
-- ARGV[1…] = names
-- returns 1

for _, name in ipairs(ARGV) do
    local content = redis.call('HGET', KEYS[2], name)
    if content then
        for place = 0, struct.unpack('<I2', content) - 1 do
            redis.call('HDEL', KEYS[2], name .. struct.pack('<I2', place))
        end
        redis.call('HDEL', KEYS[2], name)
    end
    redis.call('ZREM', KEYS[1], name)
end
return 1
