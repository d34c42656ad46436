end

-- Ends what `fenced_begin` began.
local reply, fences = run(), {}
for place = 1, SHARDS do
    if counted[place] then
        fences[#fences + 1] = FENCES[place]
        fences[#fences + 1] = CARRIED:sub(1, 8) .. struct.pack('>i8', writes[place])
    end
    reply[#reply + 1] = writes[place]
end
if #fences > 0 then
    redis.call('MSET', unpack(fences))
end
return reply
