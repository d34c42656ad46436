"""Environments and drivers that measure the shipped decisions on synthetic or logged streams."""
