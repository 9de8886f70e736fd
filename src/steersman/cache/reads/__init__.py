"""Reads from the cache and their errors, and what refers to what."""
