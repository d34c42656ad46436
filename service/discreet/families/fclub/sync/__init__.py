"""What servers tell each other: noisy updates one way, the merged model the other.

    merged_model    what the global server tells a local one: the message, and where it is kept
    local_server    sends updates and fetches the merged model, in the background
    global_server   keeps everybody's updates and merges them

A local server's updates are *totals*: whatever a noisy sum about the same members grew to. Each has
a number, a total that changes gets the next one, and the global server keeps the newest of each. So
sending again, in another order, or from the beginning, changes nothing, and no list of what waits
is needed. Totals of noisy sums are post-processing of noisy sums: they cost nobody anything.

The local server always calls, so it needs no open port for the global one.
"""
