"""Where ledgers, claims, sums and models live. May import privacy's charges and errors only.

    stores        what a store must do; everything above knows only this
    memory        the store as dictionaries, for simulations (memory_sums, memory_values, expiring)
    redis_store   the store on Redis or Valkey: a method for each command (redis_sums,
                  redis_releases, redis_values)
      scripts     the Lua scripts, in lua/
      keys        every key, and which of them share a slot (slots)
      replies     what comes back, and what of it cannot be read (codec)
      client      the bridge to whatever carries commands; wire/ is our own
      urls        where a store is: single, TLS, Sentinel, Cluster
      fence       noticing a store that lost something (marks, redis_fence)
    embedded      a real server of our own (keeper)
    checks        what every store refuses
    principals    digests of client and event ids

Nothing is imported here: the keeper must start quickly.
"""
