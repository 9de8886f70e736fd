"""A failure that ends the command with one sentence."""

from __future__ import annotations


class Failure(Exception):
    """What went wrong and what to do next."""
