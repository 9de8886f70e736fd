"""The errors of a reconcile: what they mean, and how a condition reports them. Pure."""

from __future__ import annotations

import asyncio

from steersman.controller import TerminalError, explanation_of, is_race
from steersman.errors import Forbidden, is_exit
from steersman.objects import Object


def is_error(error: BaseException) -> bool:
    """Whether a condition reports an exception: not if it ends the reconcile or the program.

    Nor if another writer was faster: the next reconcile reads the result.
    """
    return not (isinstance(error, asyncio.CancelledError) or is_exit(error) or is_race(error))


def own_namespace_ends(error: BaseException, obj: Object) -> bool:
    """Whether the server rejected a write because the object's own namespace is being deleted, and no other one."""
    own = f"namespace {obj.key.namespace} is being terminated"
    return isinstance(error, Forbidden) and any(
        cause.reason == "NamespaceTerminating" and cause.message == own for cause in error.causes
    )


def words_of(error: BaseException) -> str:
    """An error as a condition reports it: with its type, unless the program raised it for people."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - user code: even str() of its exception may raise
        text = ""
    if not text or not isinstance(error, TerminalError):
        words = f"{type(error).__name__}: {text}" if text else type(error).__name__
        explanation = explanation_of(error)
        return f"{words}. {explanation}" if explanation else words
    return text
