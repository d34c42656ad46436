"""Where sums and ledgers live. May import privacy's integer charges and errors; never decisions."""
