-- Ends a lease, if it is one's own.
--
-- KEYS[1] = lease: who holds it
-- ARGV[1] = holder
-- returns 1 if it was, else 0

if redis.call('GET', KEYS[1]) ~= ARGV[1] then
    return 0
end
return redis.call('DEL', KEYS[1])
