end

-- Ends what `fenced_begin` began.
local reply, fences, last = run(), {}, 0
local answers, identity = #reply, CARRIED:sub(1, 8)
for place = 1, SHARDS do
    if counted[place] then
        fences[last + 1] = FENCES[place]
        fences[last + 2] = struct.pack('>c8i8', identity, writes[place])
        last = last + 2
    end
    reply[answers + place] = writes[place]
end
if last > 0 then
    redis.call('MSET', unpack(fences))
end
return reply
