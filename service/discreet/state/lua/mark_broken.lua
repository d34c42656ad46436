-- Says why a store must not be used, for those who know less. An emptied one stays empty, and one
-- that was accepted in place of the caller's is left alone: others begin anew with it.
--
-- KEYS[1] = identity: hash with identity, accepted and broken
-- ARGV[1] = why
-- ARGV[2] = the identity that the caller knows
-- returns 1 if it was said, else 0

local identity, accepted = unpack(redis.call('HMGET', KEYS[1], 'identity', 'accepted'))
if not identity or accepted and identity ~= ARGV[2] and accepted:find(ARGV[2], 1, true) then
    return 0
end
redis.call('HSET', KEYS[1], 'broken', ARGV[1])
return 1
