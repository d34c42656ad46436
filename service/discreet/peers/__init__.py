"""What one instance says to another, over HTTP. May import state, algorithms and privacy."""
