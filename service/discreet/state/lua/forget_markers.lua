-- Removes the markers of a principal. The ledger is not touched: what was paid stays paid.
--
-- KEYS[1] = markers: sorted set, score = when they lapse, in ms
-- returns the markers that had not lapsed, each followed by the charge that it paid for

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local alive = redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. now, '+inf')
redis.call('DEL', KEYS[1])
return alive
