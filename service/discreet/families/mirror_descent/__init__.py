"""Sparse mirror descent over data centres: nodes that learn one model, each with its own clients.

`reading` checks questions, `model` ranks by what was released, `learning` makes gradients of
feedback and models of sums, `sync` mixes a node's sums with its neighbours'.
"""
