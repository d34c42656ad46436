-- Erases an event if the answer that stands there is the given one.
--
-- KEYS[1] = event: hash of f (fingerprint of the request) and a (its answer)
-- ARGV[1] = answer
-- returns 1 if it was erased, else 0

if redis.call('HGET', KEYS[1], 'a') ~= ARGV[1] then
    return 0
end
return redis.call('DEL', KEYS[1])
