-- Erases a principal's own sums.
--
-- KEYS[1] = own sums: set of principals
-- KEYS[2] = the sums of this principal
-- ARGV[1] = principal
-- returns 1 if there were any, else 0

redis.call('UNLINK', KEYS[2])
return redis.call('SREM', KEYS[1], ARGV[1])
