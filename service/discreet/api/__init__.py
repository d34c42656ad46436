"""HTTP in, HTTP out. May import decisions and everything below; nobody but app imports it."""
