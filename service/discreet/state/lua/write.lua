-- Runs one command that writes.
--
-- KEYS[1] = the key that it writes to
-- ARGV[1…] = the command's words
-- returns what the command does

return redis.call(unpack(ARGV))
