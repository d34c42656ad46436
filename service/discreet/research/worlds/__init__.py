"""Worlds whose truth is known: who comes, and what they like; and readers of data sets."""
