"""A history checker in the style of Jepsen: real servers, a nemesis, and proof from histories.

    history   what callers sent, and what was acknowledged
    checker   from a history and the final ledgers to violations; pure
    callers   people who ask, retry, repeat and send feedback, by seed
    nemesis   kills, freezes, partitions, fills and rolls back
    run       all of it together: `python -m tests.chaos.run --seconds 600 --seed 7`
    report    figures and a picture

`make chaos` runs it for as long as one likes; `test_run.py` for a short while with every test run.
"""
