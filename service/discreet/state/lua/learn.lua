-- Claims a decision's feedback once and adds to a cell's sums, all or nothing.
--
-- A script has no rollback, and whether a 64-bit sum overflows cannot be foretold in Lua's
-- doubles. So BITFIELD judges, and if it refuses any field the cell is put back, byte for byte,
-- before anybody else can look.
--
-- KEYS[1] = cell: big-endian signed sums, 8 bytes each
-- KEYS[2] = claim, under the cell's tag: the reward that was counted
-- ARGV[1] = reward, ARGV[2] = the claim's time to live in ms
-- ARGV[3…] = INCRBY i64 #field amount, for each increment
-- returns {1 = counted | 2 = duplicate | 3 = conflict | -1 = overflow | -2 = unreadable cell,
--          the cell's first 8 bytes after}

local counted = redis.call('GET', KEYS[2])
if counted then
    return {counted == ARGV[1] and 2 or 3, redis.call('GETRANGE', KEYS[1], 0, 7)}
end

local before = redis.call('GET', KEYS[1])
if before and #before % 8 ~= 0 then
    return {-2, ''}
end

-- Lua can unpack a few thousand values at once; four make an increment.
for first = 3, #ARGV, 4000 do
    local sums = redis.call('BITFIELD', KEYS[1], 'OVERFLOW', 'FAIL',
        unpack(ARGV, first, math.min(first + 3999, #ARGV)))
    for i = 1, #sums do
        if not sums[i] then
            if before then
                redis.call('SET', KEYS[1], before)
            else
                redis.call('DEL', KEYS[1])
            end
            return {-1, ''}
        end
    end
end
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
return {1, redis.call('GETRANGE', KEYS[1], 0, 7)}
