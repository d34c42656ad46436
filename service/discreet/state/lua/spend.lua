-- Debits a ledger if its total stays within a limit. Refused, nothing changes.
--
-- KEYS[1] = ledger
-- KEYS[2] = markers of the same principal: sorted set, score = when they lapse, in ms (optional)
-- last two KEYS = open decisions of a recommender: sorted set of names, score = when they are due,
--                 in ms; and hash of name to number of items and content (both or neither)
-- ARGV[1] = three columns of the charge and three of the limit, packed like an account
-- ARGV[2] = the account
-- ARGV[3] = the length of the limit's window in seconds; 0 if it is for ever
-- ARGV[4] = the purpose
-- ARGV[5] = marker, followed by the account and the charge that it pays for (with KEYS[2])
-- ARGV[6] = the marker's time to live in ms (with KEYS[2])
-- last five ARGV = a decision to open if the debit is granted: name, content, when it is due in ms,
--                  how many may be open here, GT or LT: which of two moments stands
-- returns {1 = granted | 0 = refused | -1 = unreadable ledger, ledger after, 1 = opened | 0 = not}

local ABANDONED = 30 * 86400000
local MARKERS = (#KEYS == 2 or #KEYS == 4) and KEYS[2]

local now, account = milliseconds(), tonumber(ARGV[2])
local field = day_field(now, account, ARGV[4])
local ledger = read_ledger(KEYS[1], field)
if not ledger then
    return {-1, '', 0}
end
local window = turn_windows(ledger, tonumber(ARGV[3]), now)

-- Opens the decision that comes with a debit, if there is room for it.
local function open_decision()
    if #KEYS < 3 then
        return 0
    end
    local open, contents, last = KEYS[#KEYS - 1], KEYS[#KEYS], #ARGV
    local name = ARGV[last - 4]
    if redis.call('ZCARD', open) >= tonumber(ARGV[last - 1])
        and not redis.call('ZSCORE', open, name) then
        return 0
    end
    redis.call('ZADD', open, ARGV[last], ARGV[last - 2], name)
    redis.call('HSET', contents, name, ARGV[last - 3])
    local ends = redis.call('ZRANGE', open, -1, -1, 'WITHSCORES')[2] + ABANDONED
    redis.call('PEXPIREAT', open, ends)
    redis.call('PEXPIREAT', contents, ends)
    count_write()
    return 1
end

if MARKERS then
    local lapses = redis.call('ZSCORE', MARKERS, ARGV[5])
    if lapses and tonumber(lapses) > now then
        return {1, pack_ledger(ledger), open_decision()}
    end
end

local after
local terms = {struct.unpack(ACCOUNTS, ARGV[1])}
if terms[1] > 0 or terms[2] > 0 or terms[3] > 0 then
    if not debit(ledger, account, terms, {terms[4], terms[5], terms[6]}, window) then
        -- Refusals are few: the ledger is read once more, as it stands.
        ledger = read_ledger(KEYS[1], field)
        turn_windows(ledger, tonumber(ARGV[3]), now)
        return {0, pack_ledger(ledger), 0}
    end
    after = write_ledger(KEYS[1], ledger, field, terms)
    count_write()
end
if MARKERS then
    redis.call('ZREMRANGEBYSCORE', MARKERS, '-inf', now)
    redis.call('ZADD', MARKERS, now + ARGV[6], ARGV[5])
    -- The set goes with its last marker.
    redis.call('PEXPIREAT', MARKERS, redis.call('ZRANGE', MARKERS, -1, -1, 'WITHSCORES')[2])
end
return {1, after or pack_ledger(ledger), open_decision()}
