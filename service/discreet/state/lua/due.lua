-- Returns decisions of a recommender on a shard that are due, the earliest first.
--
-- KEYS[1] = open decisions: sorted set of names, score = when they are due, in ms
-- KEYS[2] = hash of name to content, and of a name and an item's place to nothing once it is counted
-- ARGV[1] = how many to return at most
-- returns {how many are open, name, content or nil, name, content or nil, …}

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local found = {redis.call('ZCARD', KEYS[1])}
for _, name in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, ARGV[1])) do
    found[#found + 1] = name
    found[#found + 1] = redis.call('HGET', KEYS[2], name)
end
return found
