-- Replaces a document and advances the epoch, if what stands there is what the caller saw.
--
-- KEYS[1] = documents: hash by name, KEYS[2] = epoch
-- ARGV[1] = name, ARGV[2] = document
-- ARGV[3] = the document that must stand there now; absent if there must be none
-- returns 1 if it was replaced, 0 if somebody else was faster

if redis.call('HGET', KEYS[1], ARGV[1]) ~= (ARGV[3] or false) then
    return 0
end
redis.call('INCR', KEYS[2])
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return 1
