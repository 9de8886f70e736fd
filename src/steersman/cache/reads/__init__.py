"""Reads from the cache, and their errors."""
