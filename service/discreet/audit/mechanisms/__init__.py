"""An audit that can say no: every claim examined, every planted fault caught, or a failure.

    enclosures    exp and log between two rationals
    rationals     linear equations without rounding
    exact         privacy losses in rationals, judged without floating-point error
    statistical   samples judged with finite-sample error probabilities
    scripted      noise written down in advance, to read off a mechanism's exact distribution
    claims        what a check is, what it finds, and how much luck a run may have
    prices        what the ledger debits for an event
    worlds        inputs that must not be told apart, and the examinations that compare them
    choices, votes, numbers, sums, books, calibrated     the claims, by what they are about
    planted_*     mechanisms broken on purpose, put before the same examinations
    catalogue     everything that a run examines
    report, command     JSON, table, progress bar, exit code

Imports the rest of `discreet.privacy`, numpy, scipy, and rich for the terminal.
"""
