"""The error that a board raises for an action that it cannot perform."""

from __future__ import annotations


class ActionRefused(Exception):
    """The service is unknown, or its kind does not support the action. The message says what to do."""
