"""One module for each subcommand of `discreet`: `configure(parser)` and `run(args) -> int`."""
