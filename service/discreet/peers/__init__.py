"""What one instance says to another, over HTTP. May import families, state and privacy.

gateway   sends messages, each with a deadline, to peers by name
circuit   leaves a peer that keeps failing out for a while
"""
