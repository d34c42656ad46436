-- Claims an event id for one request, if it is free.
--
-- KEYS[1] = event: hash of f (fingerprint of the request) and a (its answer)
-- ARGV[1] = fingerprint, ARGV[2] = time to live in ms
-- returns {fingerprint that stands, answer that stands or nil}

if redis.call('HSETNX', KEYS[1], 'f', ARGV[1]) == 1 then
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return redis.call('HMGET', KEYS[1], 'f', 'a')
