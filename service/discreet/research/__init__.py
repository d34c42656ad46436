"""The papers and the simulations: what researchers run, and the server never imports.

published/   the five papers' algorithms as published, with their noise
rivals/      what the papers compare themselves with, and the suite's rivals
continual/   noisy running sums, which some published algorithms use
worlds/      who comes and what they like: synthetic worlds, and readers of data sets
simulate/    the shipped decisions on a simulated clock, and traffic for a running server
suite/       judges learners: worlds, rivals and the private optimum on the same visits
reproduce/   one module a paper: play everything, put its numbers beside ours
noise.py     noise from a seed, for experiments only
"""
