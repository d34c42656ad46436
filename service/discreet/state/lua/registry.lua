-- Reads every document and the epoch that they belong to, at one moment.
--
-- KEYS[1] = documents: hash by name, KEYS[2] = epoch
-- returns {epoch or nil, {name, document, …}}

return {redis.call('GET', KEYS[2]), redis.call('HGETALL', KEYS[1])}
