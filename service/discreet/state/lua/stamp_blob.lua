-- Replaces a blob by the store's time, and advances its version.
--
-- KEYS[1] = blob: its version, big-endian, 8 bytes, followed by its content: seconds since 1970,
--           rounded up, little-endian, 8 bytes
-- returns {the new version, the time in ms}, or {-1, 0} if the blob is unreadable

local version = 0
local stored = redis.call('GETRANGE', KEYS[1], 0, 7)
if #stored == 8 then
    version = struct.unpack('>i8', stored)
elseif #stored > 0 then
    return {-1, 0}
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('SET', KEYS[1], struct.pack('>i8', version + 1) .. struct.pack('<i8', math.ceil(now / 1000)))
return {version + 1, now}
