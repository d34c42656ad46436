-- Debits a ledger if its total stays within a limit. Refused, nothing changes.
--
-- KEYS[1] = ledger
-- KEYS[2] = markers of the same principal: sorted set, score = when they lapse, in ms (optional)
-- ARGV[1] = three columns of the charge and three of the limit, packed like an account
-- ARGV[2] = the account
-- ARGV[3] = the length of the limit's window in seconds; 0 if it is for ever
-- ARGV[4] = the purpose
-- ARGV[5] = marker, followed by the account and the charge that it pays for (with KEYS[2])
-- ARGV[6] = the marker's time to live in ms (with KEYS[2])
-- returns {1 = granted | 0 = refused | -1 = unreadable ledger, ledger after}

local now, account = milliseconds(), tonumber(ARGV[2])
local field = day_field(now, account, ARGV[4])
local ledger = read_ledger(KEYS[1], field)
if not ledger then
    return {-1, ''}
end
local window = turn_windows(ledger, tonumber(ARGV[3]), now)

if KEYS[2] then
    local lapses = redis.call('ZSCORE', KEYS[2], ARGV[5])
    if lapses and tonumber(lapses) > now then
        return {1, pack_ledger(ledger)}
    end
end

local after
local terms = {struct.unpack(ACCOUNTS, ARGV[1])}
if terms[1] > 0 or terms[2] > 0 or terms[3] > 0 then
    if not debit(ledger, account, terms, {terms[4], terms[5], terms[6]}, window) then
        -- Refusals are few: the ledger is read once more, as it stands.
        ledger = read_ledger(KEYS[1], field)
        turn_windows(ledger, tonumber(ARGV[3]), now)
        return {0, pack_ledger(ledger)}
    end
    after = write_ledger(KEYS[1], ledger, field, terms)
    count_write()
end
if KEYS[2] then
    redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
    redis.call('ZADD', KEYS[2], now + ARGV[6], ARGV[5])
    -- The set goes with its last marker.
    redis.call('PEXPIREAT', KEYS[2], redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')[2])
end
return {1, after or pack_ledger(ledger)}
