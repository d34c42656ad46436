"""Voters' weights (p-REC): people vote on what is new, and clients follow those who think alike.

The exception among the families: answers are not made from a released model. Each answer is itself
the release of the votes, and is charged to the voters before it leaves.

    run_parameters   what a client's run costs and promises, from its public parameters
    model            one draw, and the proof of its price
    credits          how much each voter still counts with one client
    history          a client's answers and opinions, as the store keeps them
    learning         feedback: an opinion, written once into the client's history
    rounds, votes    what people vote on, and how they voted
    clients          what a worker remembers of clients
    document, guarantee, recommender   as in every family
"""
