"""Claims about `discreet.privacy` and about ledgers, each beside the faults it must notice.

choices, votes     the mechanisms that choose
numbers, sums      the mechanisms that add noise, and the samplers below them
ledgers            prices, limits, composition, and what a store charges for many records
calibrations       the noise that a promise needs
*_planted          mechanisms broken on purpose, put before the same examinations
"""
