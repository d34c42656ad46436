-- Removes a document and advances the epoch, if what stands there is what the caller saw.
--
-- KEYS[1] = documents: hash by name, KEYS[2] = epoch
-- ARGV[1] = name, ARGV[2] = the document that must stand there now
-- returns 1 if it was removed, else 0

if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then
    return 0
end
redis.call('INCR', KEYS[2])
return redis.call('HDEL', KEYS[1], ARGV[1])
