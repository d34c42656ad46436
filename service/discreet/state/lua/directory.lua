-- Functions of the scripts that erase directories: a set of names, and beside it one value for each
-- name, under the set's key followed by the name.

-- Erases up to `most` names of a directory and returns how many were erased.
local function erase_names(directory, most)
    local names = redis.call('SPOP', directory, most)
    for _, name in ipairs(names) do
        redis.call('UNLINK', directory .. name)
    end
    return #names
end
