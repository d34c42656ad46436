-- Puts other own sums in the place of what they begin with, which must still be there.
--
-- KEYS[1] = the sums of a principal
-- ARGV[1] = the digest of what they begin with
-- ARGV[2] = its length
-- ARGV[3] = what is put in its place
-- returns 1 if it was done, 0 if they begin with something else by now

local found, length = redis.call('GET', KEYS[1]) or '', tonumber(ARGV[2])
if #found < length or redis.sha1hex(found:sub(1, length)) ~= ARGV[1] then
    return 0
end
redis.call('SET', KEYS[1], ARGV[3] .. found:sub(length + 1))
return 1
