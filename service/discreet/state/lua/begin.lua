-- Tells the schema and the identity of a namespace; one that holds nothing gets the caller's, if
-- the caller may begin one.
--
-- A server writes its secrets before anything else, so a namespace without these holds nothing.
-- One that was written before stores had an identity gets one as well. One that had secrets and has
-- them no more is broken: another pepper would give every client a fresh ledger.
--
-- KEYS[1] = schema
-- KEYS[2] = documents, KEYS[3] = epoch, KEYS[4] = secrets
-- KEYS[5] = identity: hash with identity, accepted, broken, begun, and whether there were secrets
-- ARGV[1] = the schema that the caller reads and writes
-- ARGV[2] = an identity, for a namespace that has none
-- ARGV[3] = 1 if an empty namespace may be begun, else 0
-- returns {the schema that stands, 0 if there are data without one, or -1 if there is nothing;
--          identity, accepted, broken, begun}

local schema = redis.call('GET', KEYS[1])
if not schema then
    if redis.call('EXISTS', KEYS[2], KEYS[3], KEYS[4], KEYS[5]) > 0 then
        return {'0'}
    elseif ARGV[3] ~= '1' then
        return {'-1'}
    end
    redis.call('SET', KEYS[1], ARGV[1])
    schema = ARGV[1]
end
if schema ~= ARGV[1] then
    return {schema}
end
redis.call('HSETNX', KEYS[5], 'identity', ARGV[2])
if redis.call('EXISTS', KEYS[4]) == 1 then
    redis.call('HSET', KEYS[5], 'secrets', '1')
elseif redis.call('HEXISTS', KEYS[5], 'secrets') == 1 then
    redis.call('HSET', KEYS[5], 'broken', 'the store has lost its secrets, by which ledgers are found')
end
local record = redis.call('HMGET', KEYS[5], 'identity', 'accepted', 'broken', 'begun')
return {schema, record[1], record[2], record[3], record[4]}
