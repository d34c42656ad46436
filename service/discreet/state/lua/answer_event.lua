-- Stores the answer to a claimed event, unless there is one. An event that nobody claims (it
-- lapsed or was erased meanwhile) is not brought back.
--
-- KEYS[1] = event: hash of f (fingerprint of the request) and a (its answer)
-- ARGV[1] = answer, ARGV[2] = time to live in ms
-- returns the answer that stands, or nil if the event is not claimed

if redis.call('HEXISTS', KEYS[1], 'f') == 0 then
    return false
end
if redis.call('HSETNX', KEYS[1], 'a', ARGV[1]) == 1 then
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return redis.call('HGET', KEYS[1], 'a')
