-- Debits a ledger if its total stays within a limit. Refused, nothing changes.
--
-- KEYS[1] = ledger
-- KEYS[2] = markers of the same principal: sorted set, score = when they lapse, in ms (optional)
-- ARGV[1] = three columns of the charge and three of the limit, packed like an account
-- ARGV[2] = the account
-- ARGV[3] = marker, followed by the account and the charge that it pays for (with KEYS[2])
-- ARGV[4] = the marker's time to live in ms (with KEYS[2])
-- returns {1 = granted | 0 = refused | -1 = unreadable ledger, ledger after}

local spent = read_ledger(KEYS[1])
if not spent then
    return {-1, ''}
end
local before = pack_ledger(spent)

local now
if KEYS[2] then
    local time = redis.call('TIME')
    now = time[1] * 1000 + math.floor(time[2] / 1000)
    local lapses = redis.call('ZSCORE', KEYS[2], ARGV[3])
    if lapses and tonumber(lapses) > now then
        return {1, before}
    end
end

local after = before
local terms = {struct.unpack('>i8i8i8i8i8i8', ARGV[1])}
if terms[1] > 0 or terms[2] > 0 or terms[3] > 0 then
    if not debit(spent, tonumber(ARGV[2]), terms, {terms[4], terms[5], terms[6]}) then
        return {0, before}
    end
    after = pack_ledger(spent)
    redis.call('SET', KEYS[1], after)
    count_write()
end
if KEYS[2] then
    redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
    redis.call('ZADD', KEYS[2], now + ARGV[4], ARGV[3])
    -- The set goes with its last marker.
    redis.call('PEXPIREAT', KEYS[2], redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')[2])
end
return {1, after}
