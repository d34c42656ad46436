-- Gives names consecutive numbers, each once and for ever, and returns the numbers of all.
--
-- A roster only grows, or goes as a whole, so its size is the next number.
--
-- KEYS[1] = roster: hash of name to number
-- ARGV[1…] = names
-- returns the number of each

local numbers = {}
local size = redis.call('HLEN', KEYS[1])
-- Lua can unpack a few thousand values at once; a name and its number make two.
for first = 1, #ARGV, 3000 do
    local found = redis.call('HMGET', KEYS[1],
        unpack(ARGV, first, math.min(first + 2999, #ARGV)))
    local fresh, added = {}, {}
    for i = 1, #found do
        local name = ARGV[first + i - 1]
        local number = found[i] or fresh[name]
        if not number then
            number = string.format('%d', size)
            size = size + 1
            fresh[name] = number
            added[#added + 1] = name
            added[#added + 1] = number
        end
        numbers[first + i - 1] = tonumber(number)
    end
    if #added > 0 then
        redis.call('HSET', KEYS[1], unpack(added))
    end
end
return numbers
