"""Where sums and ledgers live. May import privacy's integer charges and errors; never decisions.

    stores        what a store must do; everything above knows only this
    memory        the store as dictionaries, for simulations        (expiring)
    redis_store   the store on Redis or Valkey, one method a script (scripts, lua/, keys, replies)
      urls        where it is: single, TLS, Sentinel, Cluster
      routes      which server runs a command, and what may be sent twice (cluster, commands)
      lanes       one server: connected, or trying to be            (dialling, wire)
    embedded      a real server of our own                          (keeper)
    codec, checks what is written, and what is refused before it is

Nothing is imported here: the keeper must start quickly.
"""
