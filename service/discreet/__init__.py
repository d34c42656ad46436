"""Discreet learns online from everyone and can prove how little it gives away about anyone.

The tree is the first page of the documentation. Reading order:

    errors        what can go wrong, drawn as one tree
    privacy/      events, noise, mechanisms, accountants, calibration; pure
    state/        where sums, ledgers and models live: protocols, memory, Redis, the embedded Valkey
    families/     what a recommender is (`contract`), and six of them, a package each; they decide
                  from released models, learn into sums, release, and say what they guarantee
    peers/        what one instance says to another over HTTP
    decisions/    what happens to one request, whatever the family: recommend, feedback, release
    settings, configuration, metrics/, logs, validation, store_metrics, telemetry, demo/
                  what a server is told, and what it tells
    api/          HTTP in, HTTP out
    hub/          the client on a person's own device, with its page: it needs no server's trust
    research/     the papers' algorithms as published, worlds, rivals, and the drivers that measure
    audit/        every privacy claim examined, and planted faults that have to be caught
    app           which parts there are, and how they begin and end
    connections, http_messages, bounded_http, protocol
                  HTTP/1.1 from strangers, with bounds; the short way of requests
    serving, preparation
                  several workers behind one socket, and what is done before they start
    cli           what people type; commands/ has one module a subcommand

Dependencies point one way, from the bottom of that list to its top; import-linter holds it. The
server reaches neither research/ nor audit/.
"""

__version__ = "0.1.0"
