-- Returns a secret, storing the proposal first if there is none: the first proposal wins.
--
-- KEYS[1] = secrets: hash by name
-- ARGV[1] = name, ARGV[2] = proposal
-- returns the secret that stands

redis.call('HSETNX', KEYS[1], ARGV[1], ARGV[2])
return redis.call('HGET', KEYS[1], ARGV[1])
