"""Claims and planted faults of every family, in a module (or package) of its algorithm's name."""
