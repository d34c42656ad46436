-- Erases what a ledger says by day; what was spent stays.
--
-- KEYS[1] = ledger
-- returns how many entries there were

local erased = 0
for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
    if #field > 1 and field:sub(1, 1) == 'd' then
        erased = erased + redis.call('HDEL', KEYS[1], field)
    end
end
return erased
