"""What happens to one request: recommend, feedback, registry, tokens.

May import state, algorithms and privacy.
"""
