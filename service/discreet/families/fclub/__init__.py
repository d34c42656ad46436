"""Federated clusters of linear bandits: local servers that serve users, a global one that merges.

May import what `decisions` may.
"""
