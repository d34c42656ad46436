-- Claims feedback once, charges it and adds it to sums, all or nothing, each by itself.
--
-- A script has no rollback, and whether a 64-bit sum overflows cannot be foretold in Lua's doubles.
-- So BITFIELD judges, and if it refuses any field, everything is taken back, byte for byte, before
-- anybody else can look. All that may be unreadable is read before anything is written: it is
-- nobody else's trouble.
--
-- While a cluster moves the slot, blocks may be elsewhere. The claim is a key that is not there
-- yet, so until the move is done the members refuse the call (TRYAGAIN), and no block is missed.
--
-- All records of a call are alike: the same recommender, charge, limit, window and purpose, and
-- either all of them are of decisions that are awaited or none is.
--
-- KEYS[1] = the first ledger; then, for each record in turn:
--           ledger
--           claim: the reward that was counted; after a "!" if it was not added
--           contents of open decisions: hash of name to content, and of a name and an item's place
--           to the reward that is held for it, or "c" once it is counted (only if awaited)
-- ARGV[1] = three columns of the first record's charge and three of the limit, packed like an
--           account; empty if the records are free
-- ARGV[2] = the length of the limit's window in seconds; 0 if it is for ever
-- ARGV[3] = the purpose
-- ARGV[4] = for each record a byte: which of the fences is its shard's
-- ARGV[5] = the recommender's generation. It and the shard, which the fence's key begins with, name
--           counts: hash of principal to number of records since the last freeze
--           open sums: set of names of blocks; a block lies under this key followed by its name
--           own sums: set of principals; a principal's sums lie under this key followed by it
--           erasures: hash of principal to when its own sums were last erased, in seconds
--           (`state/keys.py`; every value costs the server its parsing, so they are not spelt out)
-- then, for each record in turn:
--           reward
--           the claim's time to live in ms
--           number of blocks
--           if awaited, the decision's name; the field of this item of it; and empty for feedback,
--           which is held while the decision is open. To count the item at last: the reward that
--           was held for it, or "-" if none was
--           for each block its name (empty: the principal's own), its number of increments, and
--           field and amount of each; or "+", the first field of many in a row, and their amounts;
--           or "*", and field and amount of each in turn. Packed numbers are big-endian, 4 bytes each.
--           Or ">", a number of fields, a moment in seconds, and what is put behind these fields and
--           all that was put there before, unless the own sums were erased at that moment or later:
--           the answer is then "counted" and "not added", and nothing is written
-- returns for each record 1 = counted | 2 = duplicate | 3 = conflict | 4 = held | 5 = another reward
--         is held by now | -1 = overflow | -2 = unreadable, 1 = added | 0 = not | 2 = not yet, the
--         three columns of the price (empty if none), ledger after

local now, length, shards = milliseconds(), tonumber(ARGV[2]), ARGV[4]
local field = day_field(now, 1, ARGV[3])
local terms = ARGV[1] ~= '' and {unpack_bytes(ACCOUNTS, ARGV[1])}
local limit = terms and {terms[4], terms[5], terms[6]}
local keys, generation = #KEYS / #shards, ARGV[5]
local sized = string.char(#generation) .. generation
local AWAITED = keys == 3

-- Returns whether a call failed.
local function failed(answer)
    return type(answer) == 'table' and answer.err
end

local PIECE = 128

-- Formats of so many numbers, of 4 bytes and of 8.
local FOURS, EIGHTS = {}, {}
local function formats(some)
    if not FOURS[some] then
        FOURS[some], EIGHTS[some] = '>' .. string.rep('i4', some), '>' .. string.rep('i8', some)
    end
    return FOURS[some], EIGHTS[some]
end

-- Returns numbers of 4 bytes each.
local function unpack_numbers(packed)
    local numbers, many = {}, #packed / 4
    for first = 0, many - 1, PIECE do
        local some = math.min(PIECE, many - first)
        local piece = {unpack_bytes(formats(some), packed, 4 * first + 1)}
        for i = 1, some do
            numbers[first + i] = piece[i]
        end
    end
    return numbers
end

-- Adds many amounts in a row at once: a BITFIELD of thousands takes milliseconds, and as many bytes
-- in the log. Returns false, and has changed nothing, if a sum may be more than a double can hold.
local EXACT = 9007199254740991 - 2147483648
local function add_packed(block)
    local offset, many = 8 * block.field, #block.packed / 4
    local before = call('GETRANGE', block.key, offset, offset + 8 * many - 1)
    if #before < 8 * many then
        before = before .. string.rep('\0', 8 * many - #before)
    end
    local after = ''
    for first = 0, many - 1, PIECE do
        local some = min(PIECE, many - first)
        local fours, eights = formats(some)
        local sums = {unpack_bytes(eights, before, 8 * first + 1)}
        local amounts = {unpack_bytes(fours, block.packed, 4 * first + 1)}
        for i = 1, some do
            if sums[i] > EXACT or sums[i] < -EXACT then
                return false
            end
            sums[i] = sums[i] + amounts[i]
        end
        after = after .. pack(eights, unpack(sums, 1, some))
    end
    call('SETRANGE', block.key, offset, after)
    block.before = before
    return true
end

-- Lets BITFIELD judge amounts in a row one by one.
local function unpack_row(block)
    block.words, block.first, block.last = {}, 1, #block.packed / 2
    for i, amount in ipairs(unpack_numbers(block.packed)) do
        block.words[2 * i - 1], block.words[2 * i] = block.field + i - 1, amount
    end
end

-- Takes everything back after `sums`, the answer to the increments from words[first] on of the
-- block in that place: where it is false, there is nothing to take back.
local function take_back(blocks, place, first, sums)
    for p = 1, place do
        local block = blocks[p]
        if block.before then
            redis.call('SETRANGE', block.key, 8 * block.field, block.before)
        end
        for i = block.first, block.last, 2 do
            local amount = tostring(block.words[i + 1])
            if (p < place or i < first or sums[(i - first) / 2 + 1]) and amount ~= '0' then
                -- The least number is its own negative in 64 bits.
                if amount ~= '-9223372036854775808' then
                    amount = amount:sub(1, 1) == '-' and amount:sub(2) or '-' .. amount
                end
                redis.call('BITFIELD', block.key, 'OVERFLOW', 'WRAP',
                    'INCRBY', 'i64', '#' .. block.words[i], amount)
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

-- The words of the last BITFIELD: most of them are the same again in the next.
local WORDS = {}

-- Adds the increments in words[first] to words[last] to a block, and returns the sums.
local function add_fields(key, words, first, last)
    local many = 0
    for i = first, last, 2 do
        if not WORDS[many + 1] then
            WORDS[many + 1], WORDS[many + 2] = 'INCRBY', 'i64'
        end
        -- The place in bits: a number travels quicker than the name of a field.
        WORDS[many + 3], WORDS[many + 4] = 64 * words[i], words[i + 1]
        many = many + 4
    end
    return redis.call('BITFIELD', key, 'OVERFLOW', 'FAIL', unpack(WORDS, 1, many))
end

-- Adds a record's increments to its blocks; returns false, and adds nothing, if a field overflows.
local function add(blocks)
    for _, block in ipairs(blocks) do
        if block.length == 0 then
            redis.call('SADD', block.directory, block.name)
        end
    end
    for place, block in ipairs(blocks) do
        if block.packed and not add_packed(block) then
            unpack_row(block)
        elseif block.row then
            redis.call('SETRANGE', block.key, math.max(block.length, block.head), block.row)
        end
        -- Lua can unpack a few thousand values at once; an increment makes four.
        for first = block.first, block.last, 2000 do
            local sums = add_fields(block.key, block.words, first, math.min(first + 1999, block.last))
            for i = 1, #sums do
                if not sums[i] then
                    take_back(blocks, place, first, sums)
                    return false
                end
            end
        end
    end
    return true
end

-- Returns where the increments of a block end that begins here.
local function last_of(at)
    local how = ARGV[at + 1]
    return how == '+' and at + 3 or how == '>' and at + 4 or how == '*' and at + 2
        or at + 1 + 2 * tonumber(how)
end

-- Returns whether the record whose blocks begin here is about own sums that were erased since, and
-- whether that can be read.
local function was_erased(prefix, at, principal)
    if ARGV[at + 1] ~= '>' then
        return false, true
    end
    local erased = redis.pcall('HGET', prefix .. 'x' .. generation, principal)
    return erased and not failed(erased) and tonumber(ARGV[at + 3]) <= tonumber(erased),
        not failed(erased)
end

-- Returns the blocks of a record, or nil if one cannot be read.
local function read_blocks(prefix, at, count, principal)
    local blocks = {}
    for place = 1, count do
        local name, kind = ARGV[at], 's'
        if name == '' then
            name, kind = principal, 'o'
        end
        local directory = prefix .. kind .. sized
        local key = directory .. name
        local last, how = last_of(at), ARGV[at + 1]
        local size = redis.pcall('STRLEN', key)
        if failed(size) or size % 8 ~= 0 then
            return nil
        elseif size == 0 and failed(redis.pcall('SCARD', directory)) then
            return nil
        end
        local block = {
            directory = directory, name = name, key = key, length = size,
            words = ARGV, first = 1, last = 0, packed = false, field = 0,
        }
        if how == '+' then
            block.packed, block.field = ARGV[last], tonumber(ARGV[at + 2])
        elseif how == '>' then
            block.row, block.head = ARGV[last], 8 * tonumber(ARGV[at + 2])
        elseif how == '*' then
            block.words, block.last = unpack_numbers(ARGV[last]), #ARGV[last] / 4
        else
            block.first, block.last = at + 2, last
        end
        blocks[place] = block
        at = last + 1
    end
    return blocks
end

-- Notes for as long as a decision is open that this item of it was counted: claims lapse.
local function note_counted(is_open, open, at)
    if is_open then
        call('HSET', open, ARGV[at + 5], 'c')
    end
end

-- Learns from the record whose keys follow `key`, whose arguments follow `at` and whose blocks begin
-- at `first`.
local function learn(key, at, first, shard)
    local prefix = FENCES[shard]:sub(1, -2)
    local reward, principal = ARGV[at + 1], KEYS[key + 1]:sub(#prefix + 2)
    local claim, counts = KEYS[key + 2], prefix .. 'n' .. generation
    local open = AWAITED and KEYS[key + 3]
    local ledger, claimed = read_ledger(KEYS[key + 1], field), redis.pcall('GET', claim)
    local is_open = open and redis.pcall('HEXISTS', open, ARGV[at + 4])
    local counted = terms and redis.pcall('HGET', counts, principal)
    local erased, readable = was_erased(prefix, first, principal)
    if not ledger or failed(claimed) or failed(is_open) or failed(counted) or not readable then
        return -2, 0, '', ''
    end
    local window = turn_windows(ledger, length, now)
    if erased then
        return 1, 0, '', pack_ledger(ledger)
    end
    is_open = is_open == 1
    local held = is_open and redis.call('HGET', open, ARGV[at + 5])
    local settles = open and ARGV[at + 6] ~= ''
    if settles then
        if not is_open or held == 'c' then
            return 2, 0, '', pack_ledger(ledger)
        elseif (held or '-') ~= ARGV[at + 6] then
            return 5, 2, '', pack_ledger(ledger)
        end
    elseif held and held ~= 'c' then
        return held == reward and 2 or 3, 2, '', pack_ledger(ledger)
    end

    if claimed then
        note_counted(is_open, open, at)
        local added = claimed:sub(1, 1) ~= '!'
        local counted_as = added and claimed or claimed:sub(2)
        return counted_as == reward and 2 or 3, added and 1 or 0, '', pack_ledger(ledger)
    end

    if is_open and not settles then
        redis.call('HSET', open, ARGV[at + 5], reward)
        count_write(shard)
        return 4, 2, '', pack_ledger(ledger)
    end

    -- n records that share one noise cost n^2 times the rho of one, so the n-th adds 2n - 1 times.
    -- They are counted from release to release, also where a window ends in between.
    local count, price, charge = 0, '', nil
    if terms then
        count = (tonumber(counted or '0') or -1) + 1
        if count < 1 then
            return -2, 0, '', ''
        end
        charge = {terms[1], min(terms[2] * (2 * count - 1), UNLIMITED), terms[3]}
        if not debit(ledger, 1, charge, limit, window) then
            -- Refusals are few: the ledger is read once more, as it stands.
            ledger = read_ledger(KEYS[key + 1], field)
            turn_windows(ledger, length, now)
            call('SET', claim, '!' .. reward, 'PX', ARGV[at + 2])
            note_counted(is_open, open, at)
            count_write(shard)
            return 1, 0, '', pack_ledger(ledger)
        end
        price = pack(ACCOUNT, charge[1], charge[2], charge[3])
    end

    local blocks = read_blocks(prefix, first, tonumber(ARGV[at + 3]), principal)
    if not blocks then
        return -2, 0, '', ''
    elseif not add(blocks) then
        return -1, 0, '', ''
    end
    local after
    if count > 0 then
        call('HSET', counts, principal, count)
        after = write_ledger(KEYS[key + 1], ledger, field, charge)
    end
    call('SET', claim, reward, 'PX', ARGV[at + 2])
    note_counted(is_open, open, at)
    count_write(shard)
    return 1, 1, price, after or pack_ledger(ledger)
end

local reply, at = {}, 5
for number = 1, #shards do
    local first = at + (AWAITED and 7 or 4)
    local following = first
    for _ = 1, tonumber(ARGV[at + 3]) do
        following = last_of(following) + 1
    end
    local place = 4 * number - 3
    reply[place], reply[place + 1], reply[place + 2], reply[place + 3] = learn(
        (number - 1) * keys, at, first, shards:byte(number))
    at = following - 1
end
return reply
