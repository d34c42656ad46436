"""Offline evaluation: what recommenders would earn, from a log of choices that were random.

logs          the log: CSV, Parquet or JSON lines, checked row by row
randomness    whether its choices were random, and as random as it says
estimators    IPS, SNIPS, doubly robust and replay, with intervals
reward_model  what a reward is expected to be, for the doubly robust estimate
policies      baselines: uniform, most popular, the logged policy
served        a recommender of one's own: the shipped decisions, learning from the log in order
evaluation    all of them together, and the curves by epsilon
page, drawings
              the report: one HTML page, with pictures in it
"""
