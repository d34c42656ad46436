-- Debits ledgers that a total stays within a limit in, each by itself. Refused, nothing changes.
--
-- All debits of a call are alike: the same charge, limit, window, account and purpose, all of them
-- with a marker or none, all of them with a decision to open or none.
--
-- KEYS[1] = the first ledger; then, for each debit in turn: its ledger; with markers, those of the
--           same principal: sorted set, score = when they lapse, in ms; with decisions, the open
--           ones of a recommender: sorted set of names, score = when they are due, in ms; and hash
--           of name to number of items and content
-- ARGV[1] = three columns of the charge and three of the limit, packed like an account
-- ARGV[2] = the account
-- ARGV[3] = the length of the limit's window in seconds; 0 if it is for ever
-- ARGV[4] = the purpose
-- ARGV[5] = the markers' time to live in ms; 0 if there are none
-- ARGV[6] = for each debit a byte: which of the fences is its shard's
-- then, for each debit in turn: with markers, the marker, followed by the account and the charge
--           that it pays for; with decisions, what to open if the debit is granted: name, content,
--           when it is due in ms, how many may be open here, GT or LT: which of two moments stands
-- returns for each debit 1 = granted | 0 = refused | -1 = unreadable, ledger after, 1 = opened | 0

local ABANDONED = 30 * 86400000
local LATER = 120000

local now, account, length = milliseconds(), tonumber(ARGV[2]), tonumber(ARGV[3])
local field = day_field(now, account, ARGV[4])
local terms = {struct.unpack(ACCOUNTS, ARGV[1])}
local limit = {terms[4], terms[5], terms[6]}
local charged = terms[1] > 0 or terms[2] > 0 or terms[3] > 0
local ttl, shards = tonumber(ARGV[5]), ARGV[6]
local keys, words = #KEYS / #shards, (#ARGV - 6) / #shards

-- Opens the decision that comes with a debit, if there is room beside so many others.
local function open_decision(key, word, shard, others)
    if not others then
        return 0
    end
    local open, contents, last = KEYS[key + keys - 1], KEYS[key + keys], word + words
    local name = ARGV[last - 4]
    if others >= tonumber(ARGV[last - 1]) and not redis.call('ZSCORE', open, name) then
        return 0
    end
    redis.call('ZADD', open, ARGV[last], ARGV[last - 2], name)
    redis.call('HSET', contents, name, ARGV[last - 3])
    local ends = redis.call('ZRANGE', open, -1, -1, 'WITHSCORES')[2] + ABANDONED
    redis.call('PEXPIREAT', open, ends)
    redis.call('PEXPIREAT', contents, ends)
    count_write(shard)
    return 1
end

-- Makes the debit whose keys and arguments follow these places. All that may be unreadable is read
-- before anything is written: it is nobody else's trouble.
local function spend(key, word, shard)
    local ledger = read_ledger(KEYS[key + 1], field)
    local markers, marker = ttl > 0 and KEYS[key + 2], ARGV[word + 1]
    local lapses = markers and redis.pcall('ZSCORE', markers, marker)
    local others = keys > 2 and redis.pcall('ZCARD', KEYS[key + keys - 1])
    if not ledger or type(lapses) == 'table' or type(others) == 'table' then
        return -1, '', 0
    end
    local window = turn_windows(ledger, length, now)
    if lapses and tonumber(lapses) > now then
        return 1, pack_ledger(ledger), open_decision(key, word, shard, others)
    end
    local after
    if charged then
        if not debit(ledger, account, terms, limit, window) then
            -- Refusals are few: the ledger is read once more, as it stands.
            ledger = read_ledger(KEYS[key + 1], field)
            turn_windows(ledger, length, now)
            return 0, pack_ledger(ledger), 0
        end
        after = write_ledger(KEYS[key + 1], ledger, field, terms)
        count_write(shard)
    end
    if markers then
        redis.call('ZADD', markers, now + ttl, marker)
        local left = redis.call('PTTL', markers)
        if left >= 0 then
            redis.call('ZREMRANGEBYSCORE', markers, '-inf', now)
        end
        -- The set goes a little after its last marker, so that few debits have to say when.
        if left < ttl then
            redis.call('PEXPIREAT', markers, now + ttl + math.min(ttl, LATER))
        end
    end
    return 1, after or pack_ledger(ledger), open_decision(key, word, shard, others)
end

local reply = {}
for number = 1, #shards do
    local before = number - 1
    local at = 3 * before
    reply[at + 1], reply[at + 2], reply[at + 3] = spend(
        before * keys, 6 + before * words, shards:byte(number))
end
return reply
