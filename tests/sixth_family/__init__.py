"""A sixth family, as small as one can be: the best item overall, by a private count.

It shows what a family touches: its package (these five rooms), one line of registration (`server`
calls `register`), tests and documents. `test_served` serves it end to end.
"""
