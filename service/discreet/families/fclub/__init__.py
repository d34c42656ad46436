"""Federated clusters of linear bandits: local servers that serve users, a global one that merges.

document         what a person writes
features, sums   items as whole steps; what is added up for a user, and noise on it
evidence         who shares preferences: knowledge, and clusters by Bayes factors
model            released models, and answers from them
learning         the parameters of the learner, and what every reading of it does
by_person        releases that protect everything a person did
by_observation   releases that protect one observation, outside the server
consensus        from everybody's noisy updates to clusters
sync             what servers tell each other: noisy updates, the merged model
guarantee        the card
recommender      the contract, for this family
"""
