-- Removes a document and advances the epoch, if it is there.
--
-- KEYS[1] = documents: hash by name, KEYS[2] = epoch
-- ARGV[1] = name
-- returns 1 if it was there, else 0

if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
    return 0
end
redis.call('INCR', KEYS[2])
return redis.call('HDEL', KEYS[1], ARGV[1])
