"""The six families: one contract, one package each, with the same rooms in every package.

    contract       the base class: decide, learn, release, guarantee
    questions      what passes between a family and what calls it
    documents      what all recommenders' documents share
    choice         what an answer reveals about the visitor: one private draw
    budgets        what a client's answers and feedback may cost
    cards          guarantee cards, as data
    observer       what is reported, without knowing who listens
    registration   every family, by name: the one list of them

In each package: document, model, learning, guarantee, recommender; and sync where instances speak
to each other. May import state's protocols and privacy: never Redis, HTTP, settings or metrics.
"""
