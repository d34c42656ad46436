"""The ordinary recommender: profiles in, items like them out.

    document       what a person writes
    similarities   what training finds: which items go together
    model          the released model: similarities and popularity; ranks
    learning       feedback -> rewards with their price; gathered rewards -> noisy rewards
    training       the program that compares all pairs of items, in a process of its own
    processes      starts that program and ends it
    profiles       what clients have seen, in the store
    guarantee      the card
    recommender    binds them to the contract

`on_device` makes a profile private before it leaves a client's device; the hub uses it, the server
does not. `training` and `similarities` import numpy, and in their own process scipy and the library
that finds neighbours, and nothing else of ours.
"""
