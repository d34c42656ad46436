-- Erases the open decisions of a principal.
--
-- KEYS[1] = open decisions: sorted set of names, score = when they are due, in ms
-- KEYS[2] = contents: hash of names, and of names with an item's place
-- ARGV[1] = how the principal's names begin
-- returns how many there were

local erased, beginning = 0, ARGV[1]
for _, field in ipairs(redis.call('HKEYS', KEYS[2])) do
    if field:sub(1, #beginning) == beginning then
        redis.call('HDEL', KEYS[2], field)
        erased = erased + redis.call('ZREM', KEYS[1], field)
    end
end
return erased
