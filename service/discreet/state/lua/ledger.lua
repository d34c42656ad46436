-- Functions of the scripts that debit a ledger.
--
-- A ledger is a hash, one key, so that a debit can be made while a cluster moves its slot:
--   l    two accounts, answers (0) and feedback (1), with three columns each: nano-epsilon,
--        nano-rho, pico-delta, big-endian, 8 bytes each: what was ever spent. The second account
--        is left out while it is empty.
--   w    windows, 56 bytes each: a length in seconds, a number (4 bytes each), and the same six
--        columns: what was spent in that window.
--   d…   what was spent on a day, followed by the day (4 bytes), the account (1) and the purpose.
-- Columns are integers below 2^53, in which Lua's doubles are exact; 2^53 - 1 is both "no limit"
-- and where a column saturates. A ledger that no debit can have written is never taken for empty.
--
-- Window n of length L is the time from n L to (n + 1) L on the store's clock, for everybody alike.
-- Every debit goes into every window of the ledger, whichever of them it is checked against. A
-- window never moves back: while the clock says an earlier one than the ledger does, the ledger's
-- goes on. A window that begins in a ledger without one of that length begins with all that was
-- ever spent, because it is not known when that was.

local UNLIMITED = 9007199254740991
local EMPTY = string.rep('\0', 24)
local ACCOUNT = '>i8i8i8'
local ACCOUNTS = '>i8i8i8i8i8i8'
local WINDOW = '>I4I4i8i8i8i8i8i8'
local ENTRY = '>I4I7I7I7'
local MOST_WINDOWS = 8
local DAY = 86400000
local KEPT_DAYS = 35
local NO_WINDOWS = {}  -- shared by ledgers without any: what is never made need not be collected

local call, min, pack, unpack_bytes = redis.call, math.min, struct.pack, struct.unpack

-- Returns the store's clock in milliseconds.
local function milliseconds()
    local time = call('TIME')
    return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- Returns the field of a day's entry.
local function day_field(now, account, purpose)
    return pack('>c1I4B', 'd', math.floor(now / DAY), account) .. purpose
end

local function readable(...)
    return min(...) >= 0 and math.max(...) <= UNLIMITED
end

-- Returns a ledger, or nil if it cannot be read: six columns; `windows`, each with its length, its
-- number and six columns from its third place on; and the entry of a day, `today`, if there is one.
local function read_ledger(key, field)
    local parts = redis.pcall('HMGET', key, 'l', 'w', field)
    if parts.err then
        return nil
    end
    if not parts[1] and call('EXISTS', key) == 1 then
        return nil  -- every debit writes its accounts: they were lost
    end
    local stored, windows = parts[1] or EMPTY, parts[2] or ''
    local a, b, c, d, e, f = 0, 0, 0, 0, 0, 0
    if #stored == 24 then
        a, b, c = unpack_bytes(ACCOUNT, stored)
    elseif #stored == 48 then
        a, b, c, d, e, f = unpack_bytes(ACCOUNTS, stored)
    else
        return nil
    end
    if #windows % 56 ~= 0 or not readable(a, b, c, d, e, f) then
        return nil
    end
    local ledger = {a, b, c, d, e, f, windows = NO_WINDOWS, new = not parts[1], today = parts[3]}
    if windows ~= '' then
        ledger.windows = {}
        for at = 1, #windows, 56 do
            local window = {unpack_bytes(WINDOW, windows, at)}
            if window[1] == 0 or not readable(unpack(window, 3, 8)) then
                return nil
            end
            ledger.windows[#ledger.windows + 1] = window
        end
    end
    return ledger
end

local function pack_accounts(ledger)
    if ledger[4] == 0 and ledger[5] == 0 and ledger[6] == 0 then
        return pack(ACCOUNT, ledger[1], ledger[2], ledger[3])
    end
    return pack(ACCOUNTS, ledger[1], ledger[2], ledger[3], ledger[4], ledger[5], ledger[6])
end

local function pack_windows(ledger)
    local windows = ''
    for place = 1, #ledger.windows do
        local window = ledger.windows[place]
        windows = windows .. pack(WINDOW, window[1], window[2],
            window[3], window[4], window[5], window[6], window[7], window[8])
    end
    return windows
end

-- Returns a ledger as scripts answer it: accounts, all of them if windows follow, and windows.
local function joined(accounts, windows)
    if windows == '' then
        return accounts
    end
    return accounts .. EMPTY:sub(1, 48 - #accounts) .. windows
end

local function pack_ledger(ledger)
    return joined(pack_accounts(ledger), pack_windows(ledger))
end

-- Lets windows that are over begin anew, and returns the one of this length, in seconds.
local function turn_windows(ledger, length, now)
    local found
    for place = 1, #ledger.windows do
        local window = ledger.windows[place]
        local number = math.floor(now / 1000 / window[1])
        if number > window[2] then
            window[2] = number
            for column = 1, 6 do
                -- What was booked as exact stays so, in every window: unlimited in epsilon and in
                -- rho. Gaussian noise has no epsilon of its own either, and is over with its window.
                local exact = ledger[column] == UNLIMITED
                    and (column % 3 ~= 1 or ledger[column + 1] == UNLIMITED)
                window[2 + column] = exact and UNLIMITED or 0
            end
        end
        if window[1] == length then
            found = window
        end
    end
    if not found and length > 0 then
        if ledger.windows == NO_WINDOWS then
            ledger.windows = {}
        end
        found = {length, math.floor(now / 1000 / length),
            ledger[1], ledger[2], ledger[3], ledger[4], ledger[5], ledger[6]}
        -- One that is left out here would begin with everything again: nothing is gained by it.
        if #ledger.windows == MOST_WINDOWS then
            table.remove(ledger.windows, 1)
        end
        table.insert(ledger.windows, found)
    end
    return found
end

-- Adds a charge to an account and returns whether the limit admits the total, ever spent or in a
-- window if one is given: its delta must be within the limit, and its epsilon or its rho. A limit
-- of -1 admits nothing under that rule.
local function debit(ledger, account, charge, limit, window)
    local first = 3 * account
    for column = 1, 3 do
        local place = first + column
        ledger[place] = min(ledger[place] + charge[column], UNLIMITED)
        for each = 1, #ledger.windows do
            local spent = ledger.windows[each]
            spent[2 + place] = min(spent[2 + place] + charge[column], UNLIMITED)
        end
    end
    local total, place = ledger, first
    if window then
        total, place = window, first + 2
    end
    return total[place + 3] <= limit[3]
        and (total[place + 1] <= limit[1] or total[place + 2] <= limit[2])
end

-- Writes a ledger after a charge, and the charge into the day's entry: how many there were, and
-- three columns of 7 bytes. Entries are kept for some days; who begins one drops older ones. Returns
-- the ledger as scripts answer it, and how many debits the day had before.
local function write_ledger(key, ledger, field, charge)
    local uses, epsilon, rho, delta = 0, 0, 0, 0
    if ledger.today and #ledger.today == 25 then
        uses, epsilon, rho, delta = unpack_bytes(ENTRY, ledger.today)
    elseif not ledger.new then
        local today = unpack_bytes('>I4', field, 2)
        for _, each in ipairs(call('HKEYS', key)) do
            if #each > 5 and each:sub(1, 1) == 'd'
                and unpack_bytes('>I4', each, 2) + KEPT_DAYS <= today then
                call('HDEL', key, each)
            end
        end
    end
    local entry = pack(ENTRY, min(uses + 1, 4294967295), min(epsilon + charge[1], UNLIMITED),
        min(rho + charge[2], UNLIMITED), min(delta + charge[3], UNLIMITED))
    local accounts, windows = pack_accounts(ledger), pack_windows(ledger)
    if windows == '' then
        call('HSET', key, 'l', accounts, field, entry)
    else
        call('HSET', key, 'l', accounts, 'w', windows, field, entry)
    end
    return joined(accounts, windows), uses
end
