"""`discreet simulate`: the shipped decisions in one process, and traffic for a running server."""
