-- Begins a script that may only run on a store that lost nothing; `fenced_end` ends it.
--
-- Every shard has a fence: the store's identity, and how many writes the shard has acknowledged.
-- Whoever calls carries the largest number that it was ever told. A store that was emptied has no
-- fence, another store has another identity, and one that went back in time has a smaller number:
-- there the script refuses before it looks at anything else. A call may concern several shards, if
-- they are on one server.
--
-- last of KEYS = fences of the shards: identity (8 bytes), writes (8 bytes, big-endian)
-- last of ARGV = the same as the caller carries them, one after another
-- adds to what the script returns: the number of writes of each shard now

local CARRIED = table.remove(ARGV)
local SHARDS = #CARRIED / 16
local FENCES = {}
for place = SHARDS, 1, -1 do
    FENCES[place] = table.remove(KEYS)
end
local writes, counted = {}, {}
for place, fence in ipairs(redis.call('MGET', unpack(FENCES))) do
    if not fence then
        return redis.error_reply('FENCED emptied')
    elseif #fence ~= 16 then
        return redis.error_reply('FENCED other')
    end
    local identity, count = struct.unpack('>c8i8', fence)
    local ours, least = struct.unpack('>c8i8', CARRIED, 16 * place - 15)
    if identity ~= ours then
        return redis.error_reply('FENCED other')
    elseif count < least then
        return redis.error_reply('FENCED older')
    end
    writes[place] = count
end

-- Counts a write of a shard that must not be forgotten. Called by whatever debits or claims.
local function count_write(place)
    writes[place] = writes[place] + 1
    counted[place] = true
end

local function run()
