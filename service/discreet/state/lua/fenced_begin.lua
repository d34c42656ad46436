-- Begins a script that may only run on a store that lost nothing; `fenced_end` ends it.
--
-- Every shard has a fence: the store's identity, and how many writes the shard has acknowledged.
-- Whoever calls carries the largest number that it was ever told. A store that was emptied has no
-- fence, another store has another identity, and one that went back in time has a smaller number:
-- there the script refuses before it looks at anything else.
--
-- last of KEYS = fence of the shard: identity (8 bytes), writes (8 bytes, big-endian)
-- last of ARGV = the same as the caller carries it
-- adds to what the script returns: the number of writes now

local FENCE = table.remove(KEYS)
local CARRIED = table.remove(ARGV)
local fence = redis.call('GET', FENCE)
if not fence then
    return redis.error_reply('FENCED emptied')
elseif #fence ~= 16 or fence:sub(1, 8) ~= CARRIED:sub(1, 8) then
    return redis.error_reply('FENCED other')
end
local writes = struct.unpack('>i8', fence, 9)
if writes < struct.unpack('>i8', CARRIED, 9) then
    return redis.error_reply('FENCED older')
end

-- Counts a write that must not be forgotten. Called by whatever debits or claims.
local function count_write()
    writes = writes + 1
    redis.call('SET', FENCE, fence:sub(1, 8) .. struct.pack('>i8', writes))
end

local function run()
