"""An audit that can say no: every claim examined, every planted fault caught, or a failure.

    claims            what a claim is, what an examination finds, how much luck a run may have
    enclosures        exp and log between two rationals
    scripted_noise    noise written down in advance, to read off what a mechanism does with it
    prices            what the ledger debits for an event
    examine_exact     privacy losses in rationals, judged without floating-point error
    examine_samples   samples judged with finite-sample error probabilities
    examine_worlds    inputs that must not be told apart, compared exactly and by samples
    mechanisms        claims and planted faults of `discreet.privacy` and of the ledgers
    closed_loop       two worlds that differ in one person, played through the shipped decisions
    families          claims and planted faults of every family, in a module of its name
    discovery         everything that a run examines, found by module and by family
    report, command   JSON, tables, progress bar, exit code

Imports decisions and everything below; the server never imports it.
"""
