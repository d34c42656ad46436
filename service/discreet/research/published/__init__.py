"""The five papers' algorithms as published, for comparison only: nothing here is served.

Each module cites its paper, translates its symbols, and says where the paper's own guarantee does
not hold.
"""
