-- Takes a lease that is free, or renews one's own.
--
-- KEYS[1] = lease: who holds it
-- ARGV[1] = holder, ARGV[2] = time to live in ms
-- returns 1 if it is held now, 0 if somebody else holds it

local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then
    return 0
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
