-- Reads the beginning of pages, and each from some place on.
--
-- KEYS[1] = the first page: bytes; then the others
-- ARGV[1] = how many bytes of the beginning; then, for each page in turn, where to read from
-- returns for each page the beginning and the rest

local head, reply = ARGV[1] - 1, {}
for number = 1, #KEYS do
    local at = 2 * number
    reply[at - 1] = head < 0 and '' or redis.call('GETRANGE', KEYS[number], 0, head)
    reply[at] = redis.call('GETRANGE', KEYS[number], ARGV[number + 1], -1)
end
return reply
