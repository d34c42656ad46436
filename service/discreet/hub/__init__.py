"""The client on the user's own device: keeps the raw history, sends only what its owner agreed to.

A small program with a page of its own, bound to loopback. It may import `algorithms`, `privacy` and
`errors`; it never imports the server's HTTP layer, and talks to the server as anyone else would.

Reading order: `database` (what is kept), `catalogue`, `titles` and `reading` (what can be seen, and
how a file's titles find it), `popularity` (what everybody knows of it), `history`, `choices`,
`ledger`, `releases` (what is drawn, paid and sent), `words` (what that tells, in plain language),
`upstream` (every byte that leaves), `guard` (who may talk to the page's server), `routes`, `app`.
"""
