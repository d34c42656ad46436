"""The client on the user's own device: keeps the raw history, sends only what its owner agreed to.

A small program with a page of its own, bound to loopback. It may import `families` (what makes a
profile private), `privacy` and `errors`; it never imports the server, and talks to it over HTTP as
anyone else would.

Reading order: `database` (what is kept), `catalogue`, `titles` and `reading` (what can be seen, and
how a file's titles find it), `popularity` (what everybody knows of it), `history`, `choices`,
`ledger`, `releases` (lists that are created, paid for and sent), `explanations` (what a list
reveals, in plain language), `server` (every byte that leaves), `guard` (who may talk to the page's
server), `hub`, `views`, `routes`, `app`.
"""
