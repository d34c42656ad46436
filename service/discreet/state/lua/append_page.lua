-- Appends to a page, if it is still as long as the caller believes.
--
-- KEYS[1] = page: bytes
-- ARGV[1] = content, ARGV[2] = the longest that a page may become
-- ARGV[3] = the length that it must have now; absent if any will do
-- returns the new length, -1 if it had another length, or -2 if it would become too long

local length = redis.call('STRLEN', KEYS[1])
if ARGV[3] and tonumber(ARGV[3]) ~= length then
    return -1
end
if length + #ARGV[1] > tonumber(ARGV[2]) then
    return -2
end
return redis.call('APPEND', KEYS[1], ARGV[1])
