-- Claims feedback once, charges it and adds it to sums, all or nothing.
--
-- A script has no rollback, and whether a 64-bit sum overflows cannot be foretold in Lua's doubles.
-- So BITFIELD judges, and if it refuses any field, everything is taken back, byte for byte, before
-- anybody else can look. All that may be unreadable is read before anything is written.
--
-- While a cluster moves the slot, blocks may be elsewhere. The claim is a key that is not there
-- yet, so until the move is done the members refuse the call (TRYAGAIN), and no block is missed.
--
-- KEYS[1] = ledger
-- KEYS[2] = claim: the reward that was counted; after a "!" if it was not added
-- KEYS[3] = counts: hash of principal to number of records since the last freeze
-- KEYS[4] = open sums: set of names of blocks; a block lies under this key followed by its name
-- KEYS[5] = own sums: set of principals; a principal's sums lie under this key followed by it
-- KEYS[6] = contents of open decisions: hash of name to content, and of a name and an item's place
--           to the reward that is held for it, or "c" once it is counted (only where decisions are
--           awaited)
-- ARGV[1] = reward
-- ARGV[2] = the claim's time to live in ms
-- ARGV[3] = principal
-- ARGV[4] = three columns of the first record's charge and three of the limit, packed like an
--           account; empty if the record is free
-- ARGV[5] = the length of the limit's window in seconds; 0 if it is for ever
-- ARGV[6] = the purpose
-- ARGV[7] = the decision's name (with KEYS[6])
-- ARGV[8] = the field of this item of it (with KEYS[6])
-- ARGV[9] = with KEYS[6]: empty for feedback, which is held while the decision is open. To count the
--           item at last: the reward that was held for it, or "-" if none was
-- ARGV[7…], with KEYS[6] ARGV[10…] = for each block its name (empty: the principal's own), its
--            number of increments, and field and amount of each
-- returns {1 = counted | 2 = duplicate | 3 = conflict | 4 = held | 5 = another reward is held by now |
--          -1 = overflow | -2 = unreadable, 1 = added | 0 = not | 2 = not yet, the three columns of
--          the price (empty if none), ledger after}

local function unreadable()
    return {-2, 0, '', ''}
end

local now = milliseconds()
local field = day_field(now, 1, ARGV[6])
local ledger = read_ledger(KEYS[1], field)
if not ledger then
    return unreadable()
end
local window = turn_windows(ledger, tonumber(ARGV[5]), now)

local OPEN = KEYS[6]
local is_open = OPEN and redis.call('HEXISTS', OPEN, ARGV[7]) == 1
local held = is_open and redis.call('HGET', OPEN, ARGV[8])
local settles = OPEN and ARGV[9] ~= ''
if settles then
    if not is_open or held == 'c' then
        return {2, 0, '', pack_ledger(ledger)}
    elseif (held or '-') ~= ARGV[9] then
        return {5, 2, '', pack_ledger(ledger)}
    end
elseif held and held ~= 'c' then
    return {held == ARGV[1] and 2 or 3, 2, '', pack_ledger(ledger)}
end

-- Notes for as long as the decision is open that this item of it was counted: claims lapse.
local function note_counted()
    if is_open then
        redis.call('HSET', OPEN, ARGV[8], 'c')
    end
end

local claimed = redis.call('GET', KEYS[2])
if claimed then
    note_counted()
    local added = claimed:sub(1, 1) ~= '!'
    local reward = added and claimed or claimed:sub(2)
    return {reward == ARGV[1] and 2 or 3, added and 1 or 0, '', pack_ledger(ledger)}
end

if is_open and not settles then
    redis.call('HSET', OPEN, ARGV[8], ARGV[1])
    count_write(1)
    return {4, 2, '', pack_ledger(ledger)}
end

-- n records that share one noise cost n^2 times the rho of one, so the n-th adds 2n - 1 times. They
-- are counted from release to release, also where a window ends in between.
local count, price, charge = 0, '', nil
if ARGV[4] ~= '' then
    count = (tonumber(redis.call('HGET', KEYS[3], ARGV[3]) or '0') or -1) + 1
    if count < 1 then
        return unreadable()
    end
    local terms = {struct.unpack('>i8i8i8i8i8i8', ARGV[4])}
    terms[2] = math.min(terms[2] * (2 * count - 1), UNLIMITED)
    charge = {terms[1], terms[2], terms[3]}
    local before = pack_ledger(ledger)
    if not debit(ledger, 1, charge, {terms[4], terms[5], terms[6]}, window) then
        redis.call('SET', KEYS[2], '!' .. ARGV[1], 'PX', ARGV[2])
        note_counted()
        count_write(1)
        return {1, 0, '', before}
    end
    price = struct.pack('>i8i8i8', terms[1], terms[2], terms[3])
end

local blocks = {}
local at = OPEN and 10 or 7
while at <= #ARGV do
    local directory, name = KEYS[4], ARGV[at]
    if name == '' then
        directory, name = KEYS[5], ARGV[3]
    end
    local last = at + 1 + 2 * tonumber(ARGV[at + 1])
    local length = redis.call('STRLEN', directory .. name)
    if length % 8 ~= 0 then
        return unreadable()
    end
    blocks[#blocks + 1] = {
        directory = directory, name = name, key = directory .. name, length = length,
        first = at + 2, last = last,
    }
    at = last + 1
end

-- Takes everything back after `sums`, the answer to the increments from ARGV[first] on of the
-- block in that place: where it is false, there is nothing to take back.
local function take_back(place, first, sums)
    for p = 1, place do
        local block = blocks[p]
        for i = block.first, block.last, 2 do
            local amount = ARGV[i + 1]
            if (p < place or i < first or sums[(i - first) / 2 + 1]) and amount ~= '0' then
                -- The least number is its own negative in 64 bits.
                if amount ~= '-9223372036854775808' then
                    amount = amount:sub(1, 1) == '-' and amount:sub(2) or '-' .. amount
                end
                redis.call('BITFIELD', block.key, 'OVERFLOW', 'WRAP',
                    'INCRBY', 'i64', '#' .. ARGV[i], amount)
            end
        end
    end
    for _, block in ipairs(blocks) do
        if block.length == 0 then
            redis.call('DEL', block.key)
            redis.call('SREM', block.directory, block.name)
        elseif redis.call('STRLEN', block.key) > block.length then
            redis.call('SET', block.key, redis.call('GETRANGE', block.key, 0, block.length - 1))
        end
    end
end

for _, block in ipairs(blocks) do
    if block.length == 0 then
        redis.call('SADD', block.directory, block.name)
    end
end
for place, block in ipairs(blocks) do
    -- Lua can unpack a few thousand values at once; an increment makes four.
    for first = block.first, block.last, 2000 do
        local words = {}
        for i = first, math.min(first + 1999, block.last), 2 do
            words[#words + 1] = 'INCRBY'
            words[#words + 1] = 'i64'
            words[#words + 1] = '#' .. ARGV[i]
            words[#words + 1] = ARGV[i + 1]
        end
        local sums = redis.call('BITFIELD', block.key, 'OVERFLOW', 'FAIL', unpack(words))
        for i = 1, #sums do
            if not sums[i] then
                take_back(place, first, sums)
                return {-1, 0, '', ''}
            end
        end
    end
end

if count > 0 then
    redis.call('HSET', KEYS[3], ARGV[3], count)
    write_ledger(KEYS[1], ledger, field, charge)
end
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
note_counted()
count_write(1)
return {1, 1, price, pack_ledger(ledger)}
