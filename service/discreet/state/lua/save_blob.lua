-- Replaces a blob and advances its version, if it is still the version that the caller saw.
--
-- KEYS[1] = blob: its version, big-endian, 8 bytes, followed by its content
-- ARGV[1] = content
-- ARGV[2] = the version that must stand there now, 0 for none; absent if any will do
-- returns the new version, 0 if somebody else was faster, or -1 if the blob is unreadable

local version = 0
local stored = redis.call('GETRANGE', KEYS[1], 0, 7)
if #stored == 8 then
    version = struct.unpack('>i8', stored)
elseif #stored > 0 then
    return -1
end
if ARGV[2] and tonumber(ARGV[2]) ~= version then
    return 0
end
redis.call('SET', KEYS[1], struct.pack('>i8', version + 1) .. ARGV[1])
return version + 1
