"""Our own client of Redis and Valkey: many commands in flight, and none of them run twice.

sender        what the store calls: `CommandSender`, a `client.StoreClient`
topology      which server runs a command, and what may be sent again   (cluster)
reconnecting  one server: connected, or trying to be                    (handshake)
connection    one connection: commands out, replies in
commands      a command on its way, and the group that waits for it
"""
