"""Voters' weights (p-REC) at work: rounds, votes, clients' histories, and who pays for what.

It may import what all of `discreet.decisions` may; nobody but `families`, `every_document` and
`discreet.api.voters` imports it.
"""
