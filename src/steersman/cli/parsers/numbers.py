"""Numbers of the command line."""

from __future__ import annotations

import argparse

_PORT_MAX = 65535


def seconds(text: str) -> float:
    """A positive number of seconds."""
    return _positive(text, "a positive number of seconds")


def rate(text: str) -> float:
    """A positive number of things in a second."""
    return _positive(text, "a positive number")


def _positive(text: str, words: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r}: write {words}")
    return number


def port(text: str) -> int:
    """A port; 0 is any free one."""
    if not text.isascii() or not text.isdigit() or int(text) > _PORT_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: write a number from 0 (any free one) to {_PORT_MAX}")
    return int(text)


def count(text: str) -> int:
    """A number of things, at least 0."""
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r}: write a number, at least 0")
    return int(text)
