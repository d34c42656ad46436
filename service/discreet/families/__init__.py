"""One family one file, each reads like its paper. Pure: numpy, scipy and privacy only."""
