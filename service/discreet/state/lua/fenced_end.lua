end

-- Ends what `fenced_begin` began.
local reply = run()
reply[#reply + 1] = writes
return reply
