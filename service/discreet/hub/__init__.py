"""The client on the user's own device: keeps the raw history, sends only what its owner agreed to.

A small program with a page of its own, bound to loopback. It may import `families` (what makes a
profile private), `privacy` and `errors`; it never imports the server, and talks to it over HTTP as
anyone else would.

Reading order: `database` (what is kept), `catalogue`, `titles` and `reading` (what can be seen, and
how a file's titles find it), `pins`, `accepted` and `offers` (which catalogue is used, and what a
hostile server cannot change), `popularity` (what everybody knows of it), `history`, `choices`,
`ledger`, `releases` (lists that are created, paid for and sent), `explanations` (what a list
reveals, in plain language), `local_ranking` (recommendations for which nothing leaves), `outgoing`
(every byte that leaves), `server` and `plain_server` (whom it is sent to), `service_files`, `hub`
(one service), `services` (all of them), `push` and `guard` (who may talk to the hub's own server),
`views`, `routes`, `app`.
"""
