-- Returns decisions of a recommender on a shard that are due, the earliest first.
--
-- KEYS[1] = open decisions: sorted set of names, score = when they are due, in ms
-- KEYS[2] = contents: hash of name to number of items (2 bytes) and content, and of a name and an
--           item's place (2 bytes) to the reward that is held for it, or "c" once it is counted
-- ARGV[1] = how many to return at most
-- returns {how many are open, then for each: name, content with number of items or nil, rewards}

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local found = {redis.call('ZCARD', KEYS[1])}
for _, name in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, ARGV[1])) do
    local content, rewards = redis.call('HGET', KEYS[2], name), {}
    if content then
        for place = 0, struct.unpack('<I2', content) - 1 do
            rewards[place + 1] = redis.call('HGET', KEYS[2], name .. struct.pack('<I2', place))
        end
    end
    found[#found + 1] = name
    found[#found + 1] = content
    found[#found + 1] = rewards
end
return found
