"""Voters' weights (p-REC) at work: rounds, votes, clients' histories, and who pays for what.

It may import what all of `service.decisions` may; nobody but `families`, `every_document` and
`service.api.voters` imports it.
"""
