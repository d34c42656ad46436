"""Sparse mirror descent over data centres: instances that learn one model, mixed by neighbours.

`answering` ranks by a public model, `hearing` adds a paid-for record to exact sums, `broadcasts`
releases those sums with noise now and then, `neighbours` mixes what was released.
"""
