-- Erases a principal's own sums.
--
-- KEYS[1] = own sums: set of principals; a principal's sums lie under this key followed by it
-- ARGV[1] = principal
-- returns 1 if there were any, else 0

redis.call('UNLINK', KEYS[1] .. ARGV[1])
return redis.call('SREM', KEYS[1], ARGV[1])
