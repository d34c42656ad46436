"""Claims about `discreet.privacy` and about ledgers, each beside the faults it must notice.

    choices, votes     the mechanisms that choose
    numbers            the mechanisms that add noise, and the samplers below them
    ledgers            prices, limits, composition
    stores             what a store charges for many records, and that the unpaid wait
    calibrations       the noise that a promise needs
    *_planted          mechanisms broken on purpose, put before the same examinations

Each module has a function `claims`, a function `faults`, or both.
"""
