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
local SWEEP = 16  -- lapsed markers are removed with every so many debits

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

-- Returns the ledger once more, as it stands: what was refused or paid before changed nothing.
local function standing(key)
    local ledger = read_ledger(key, field)
    turn_windows(ledger, length, now)
    return pack_ledger(ledger)
end

-- Tells whether a debit was made under a marker that has not lapsed; nil if that is unreadable.
local function paid_before(markers, marker)
    local lapses = redis.pcall('ZSCORE', markers, marker)
    if type(lapses) == 'table' then
        return nil
    end
    return lapses and tonumber(lapses) > now
end

-- Sees to it that markers are there until they lapse, and not much longer.
local function keep_markers(markers, uses)
    local left = call('PTTL', markers)
    -- The set goes a little after its last marker, so that few debits have to say when.
    if left < ttl then
        call('PEXPIREAT', markers, now + ttl + min(ttl, LATER))
    end
    if left < ttl or uses % SWEEP == 0 then
        call('ZREMRANGEBYSCORE', markers, '-inf', now)
    end
end

-- Makes the debit whose keys and arguments follow these places. All that may be unreadable is read
-- before anything is written, or is the first thing that is: it is nobody else's trouble.
local function spend(key, word, shard)
    local ledger = read_ledger(KEYS[key + 1], field)
    local markers, marker = ttl > 0 and KEYS[key + 2], ARGV[word + 1]
    local others = keys > 2 and redis.pcall('ZCARD', KEYS[key + keys - 1])
    if not ledger or type(others) == 'table' then
        return -1, '', 0
    end
    local window = turn_windows(ledger, length, now)
    local granted = not charged or debit(ledger, account, terms, limit, window)
    local added
    if markers and granted then
        -- Nearly always a new one: adding it tells. A server that takes no writes refuses this first
        -- one, and then the script as a whole.
        added = redis.pcall('ZADD', markers, 'NX', now + ttl, marker)
    end
    if markers and added ~= 1 then
        local before = paid_before(markers, marker)
        if before == nil then
            return -1, '', 0
        elseif before then
            return 1, standing(KEYS[key + 1]), open_decision(key, word, shard, others)
        end
    end
    if not granted then
        return 0, standing(KEYS[key + 1]), 0
    elseif markers and added ~= 1 then
        call('ZADD', markers, now + ttl, marker)
    end
    local after, uses
    if charged then
        after, uses = write_ledger(KEYS[key + 1], ledger, field, terms)
        count_write(shard)
    end
    if markers then
        keep_markers(markers, uses or 0)
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
