"""Adaptive partition over vendors, as requests meet it: answers, feedback, vendors, surveys."""
