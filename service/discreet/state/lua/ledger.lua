-- Functions of the scripts that debit a ledger.
--
-- A ledger has two accounts, answers (0) and feedback (1), with three columns each: nano-epsilon,
-- nano-rho, pico-delta, big-endian, 8 bytes each. The second account is left out while it is empty.
-- Columns are integers below 2^53, in which Lua's doubles are exact; 2^53 - 1 is both "no limit"
-- and where a column saturates. A ledger that no debit can have written is never taken for empty.

local UNLIMITED = 9007199254740991
local EMPTY = string.rep('\0', 24)

-- Returns the six columns of a ledger, or nil if they cannot be read.
local function read_ledger(key)
    local stored = redis.call('GET', key) or EMPTY
    if #stored == 24 then
        stored = stored .. EMPTY
    elseif #stored ~= 48 then
        return nil
    end
    local spent = {struct.unpack('>i8i8i8i8i8i8', stored)}
    for column = 1, 6 do
        if spent[column] < 0 or spent[column] > UNLIMITED then
            return nil
        end
    end
    return spent
end

local function pack_ledger(spent)
    local stored = struct.pack('>i8i8i8i8i8i8',
        spent[1], spent[2], spent[3], spent[4], spent[5], spent[6])
    if stored:sub(25) == EMPTY then
        return stored:sub(1, 24)
    end
    return stored
end

-- Adds a charge to an account and returns whether the limit admits the total: its delta must be
-- within the limit, and its epsilon or its rho. A limit of -1 admits nothing under that rule.
local function debit(spent, account, charge, limit)
    local first = 3 * account
    for column = 1, 3 do
        spent[first + column] = math.min(spent[first + column] + charge[column], UNLIMITED)
    end
    return spent[first + 3] <= limit[3]
        and (spent[first + 1] <= limit[1] or spent[first + 2] <= limit[2])
end
