-- Tells the schema of a namespace; one that holds nothing gets the caller's.
--
-- A server writes its secrets before anything else, so a namespace without these holds nothing.
--
-- KEYS[1] = schema
-- KEYS[2] = documents, KEYS[3] = epoch, KEYS[4] = secrets
-- ARGV[1] = the schema that the caller reads and writes
-- returns the schema that stands, or 0 if there are data without one

local schema = redis.call('GET', KEYS[1])
if schema then
    return schema
end
if redis.call('EXISTS', KEYS[2], KEYS[3], KEYS[4]) > 0 then
    return '0'
end
redis.call('SET', KEYS[1], ARGV[1])
return ARGV[1]
