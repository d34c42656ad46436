-- Writes into a page at many places, if the guard stands where it should.
--
-- Each run is read, patched here and written as one: a call for every write would be slow, and
-- each would be a command of its own in the server's log.
--
-- KEYS[1] = page: bytes
-- ARGV[1] = offset of the guard, ARGV[2] = the bytes that must stand there; empty for no guard
-- ARGV[3] = runs, ascending, in 4-byte words: start, number of writes, then offset and length of
--           each write, ascending and disjoint
-- ARGV[4] = contents of all writes, one after another
-- returns {1 = written | 0 = the guard did not stand, the page's length after,
--          what stood in the guard's place}

local found = ''
if #ARGV[2] > 0 then
    local first = tonumber(ARGV[1])
    found = redis.call('GETRANGE', KEYS[1], first, first + #ARGV[2] - 1)
    if found ~= ARGV[2] then
        return {0, redis.call('STRLEN', KEYS[1]), found}
    end
end

local runs, contents = ARGV[3], ARGV[4]
local at, from = 1, 1
while at <= #runs do
    local start, writes, offset, length
    start, writes, at = struct.unpack('>I4I4', runs, at)
    local length_at = at + 8 * writes - 4
    local last = struct.unpack('>I4', runs, length_at - 4) + struct.unpack('>I4', runs, length_at)
    local before = ''
    if writes > 1 then
        before = redis.call('GETRANGE', KEYS[1], start, last - 1)
        before = before .. string.rep('\0', last - start - #before)
    end
    local pieces = {}
    local cursor = start
    for _ = 1, writes do
        offset, length, at = struct.unpack('>I4I4', runs, at)
        if offset > cursor then
            pieces[#pieces + 1] = before:sub(cursor - start + 1, offset - start)
        end
        pieces[#pieces + 1] = contents:sub(from, from + length - 1)
        from = from + length
        cursor = offset + length
    end
    redis.call('SETRANGE', KEYS[1], start, table.concat(pieces))
end
return {1, redis.call('STRLEN', KEYS[1]), found}
