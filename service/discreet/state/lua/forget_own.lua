-- Erases a principal's own sums, and notes when, so that nothing from before is put there later.
--
-- KEYS[1] = own sums: set of principals
-- KEYS[2] = the sums of this principal
-- KEYS[3] = erasures: hash of principal to when its own sums were last erased, in seconds,
--           rounded up
-- ARGV[1] = principal
-- returns 1 if there were any, else 0

local time = redis.call('TIME')
redis.call('HSET', KEYS[3], ARGV[1], time[1] + (tonumber(time[2]) > 0 and 1 or 0))
redis.call('UNLINK', KEYS[2])
return redis.call('SREM', KEYS[1], ARGV[1])
