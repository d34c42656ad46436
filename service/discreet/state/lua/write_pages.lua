-- Writes into pages, each at one place, if its guards stand where they should.
--
-- KEYS[1] = the first page: bytes; then the others
-- ARGV[1] = the longest that a page may become; then, for each page in turn:
--           guards, ascending: offset and length, 4 bytes each, and the bytes that must stand there;
--           the length that the page must have now, empty if any will do; where to write; content
-- returns for each page 1 = written | 0 = not as it should be | -1 = it would become too long,
--           its length after, what stood in the guards' places

local most = tonumber(ARGV[1])

local function write(key, guards, long, start, content)
    local found, stand, at = '', true, 1
    while at <= #guards do
        local offset, length
        offset, length, at = struct.unpack('>I4I4', guards, at)
        local stood = redis.call('GETRANGE', key, offset, offset + length - 1)
        stand = stand and stood == guards:sub(at, at + length - 1)
        found = found .. stood
        at = at + length
    end
    if not stand or long ~= '' and tonumber(long) ~= redis.call('STRLEN', key) then
        return 0, redis.call('STRLEN', key), found
    end
    if start + #content > most then
        return -1, 0, ''
    end
    return 1, redis.call('SETRANGE', key, start, content), found
end

local reply = {}
for number = 1, #KEYS do
    local at, word = 3 * number, 4 * number
    reply[at - 2], reply[at - 1], reply[at] = write(
        KEYS[number], ARGV[word - 2], ARGV[word - 1], ARGV[word], ARGV[word + 1])
end
return reply
