-- Begins a script that writes to the store that the caller knows, and to no other: what was emptied
-- or replaced holds nothing of ours, and stays as it is.
--
-- last of KEYS = identity: hash with identity; absent if nothing is compared
-- last of ARGV = the identity that the caller knows; empty if nothing is compared

local KNOWN = table.remove(ARGV)
if KNOWN ~= '' then
    local identity = redis.call('HGET', table.remove(KEYS), 'identity')
    if not identity then
        return redis.error_reply('FENCED emptied')
    elseif identity ~= KNOWN then
        return redis.error_reply('FENCED other')
    end
end

