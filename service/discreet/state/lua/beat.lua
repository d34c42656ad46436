-- Writes something, to see that the shard can be written to and has lost nothing.
--
-- (the keys and arguments of `fenced_begin` alone)
-- returns {}

count_write(1)
return {}
