"""Discreet learns online from everyone and can prove how little it gives away about anyone.

The tree is the first page of the documentation. Reading order:

    errors        what can go wrong, drawn as one tree
    privacy/      events, noise, mechanisms, continual sums, accountants, calibration, audit; pure
    algorithms/   five families, each reads like its paper, published and as served; pure
    state/        where sums and ledgers live: protocols, memory, Redis, the embedded Valkey
    decisions/    what happens to one request: recommend, feedback, registry, tokens; a package for
                  each family (partition, clusters, mirror, voters, collaborative) behind `family`
    peers/        what one instance says to another over HTTP
    settings, configuration, metrics/, watching, logs, validation, demo/
                  what a server is told, and what it tells
    api/          HTTP in, HTTP out
    hub/          the client on a person's own device, with its page: it needs no server's trust
    simulation/   environments and the drivers that measure regret
    app           which parts there are, and how they begin and end
    serving, protocol, preparation
                  several workers behind one socket, and what is done before they start
    cli           what people type; commands/ has one module a subcommand

Dependencies point one way, from the bottom of that list to its top; import-linter holds it.
"""

__version__ = "0.1.0"
