"""The ordinary recommender: profiles in, items like them out. It protects nobody by itself.

May import what `discreet.decisions` may. `training` runs in a process of its own and imports
numpy, scipy and the library that finds neighbours, nothing else of ours but `snapshot`.
"""
