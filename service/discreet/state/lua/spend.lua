-- Debits a ledger if its totals stay within a limit. Refused, nothing changes.
--
-- Columns are integers below 2^53, in which Lua's doubles are exact; 2^53 - 1 is both "no limit"
-- and where a column saturates. A ledger that no debit can have written is never taken for empty.
--
-- KEYS[1] = ledger: nano-epsilon, nano-rho, pico-delta, big-endian, 8 bytes each
-- KEYS[2] = markers of the same principal: sorted set, score = when they lapse, in ms (optional)
-- ARGV[1] = charge, packed like the ledger
-- ARGV[2] = limit, packed like the ledger
-- ARGV[3] = marker, followed by the charge that it pays for (with KEYS[2])
-- ARGV[4] = the marker's time to live in ms (with KEYS[2])
-- returns {1 = granted | 0 = refused | -1 = unreadable ledger, ledger after}

local UNLIMITED = 9007199254740991

local stored = redis.call('GET', KEYS[1])
local spent = {0, 0, 0}
if stored then
    if #stored ~= 24 then
        return {-1, stored}
    end
    spent = {struct.unpack('>i8i8i8', stored)}
    for column = 1, 3 do
        if spent[column] < 0 or spent[column] > UNLIMITED then
            return {-1, stored}
        end
    end
else
    stored = struct.pack('>i8i8i8', 0, 0, 0)
end

local now
if KEYS[2] then
    local time = redis.call('TIME')
    now = time[1] * 1000 + math.floor(time[2] / 1000)
    local lapses = redis.call('ZSCORE', KEYS[2], ARGV[3])
    if lapses and tonumber(lapses) > now then
        return {1, stored}
    end
end

local charge = {struct.unpack('>i8i8i8', ARGV[1])}
local limit = {struct.unpack('>i8i8i8', ARGV[2])}
local total = {}
for column = 1, 3 do
    total[column] = math.min(spent[column] + charge[column], UNLIMITED)
    if limit[column] ~= UNLIMITED and total[column] > limit[column] then
        return {0, stored}
    end
end

local after = struct.pack('>i8i8i8', total[1], total[2], total[3])
redis.call('SET', KEYS[1], after)
if KEYS[2] then
    redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
    redis.call('ZADD', KEYS[2], now + ARGV[4], ARGV[3])
    -- The set goes with its last marker.
    redis.call('PEXPIREAT', KEYS[2], redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')[2])
end
return {1, after}
