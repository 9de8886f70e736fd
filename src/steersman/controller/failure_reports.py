"""The log lines about reconciles that failed.

Guarantees
- The log has one traceback for each cause of failure, however many requests it fails, and then a bounded number of
  lines with a count.
- A conflict is an error only when it keeps happening.
"""

from __future__ import annotations

import asyncio
import logging

from steersman.controller.causes import Request
from steersman.controller.context import ReconcileLogger
from steersman.controller.mistakes import explanation_of
from steersman.controller.records import FAILURES, Records
from steersman.errors import StatusError
from steersman.telemetry import FailureLog, error_words, passed_user_code, user_frames

#: Number of consecutive conflicts that are not logged as errors.
_QUIET_CONFLICTS = 5


class FailureReports:
    """Logs the failures of one controller."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._log = FailureLog()

    @staticmethod
    def conflict(logger: ReconcileLogger, request: Request, error: BaseException, *, count: int, delay: float) -> str:
        """Log a conflict, the latest of ``count`` in a row. Returns it as text if it counts as an error, or ""."""
        if count <= _QUIET_CONFLICTS:
            logger.debug("%s: conflict, retrying in %.2f s: %s", request, delay, error)
            return ""
        logger.error("%s: %d conflicts in a row, retrying in %.2f s: %s", request, count, delay, error)
        return error_words(error)

    def failure(self, logger: ReconcileLogger, request: Request, error: BaseException, then: str) -> str:
        """Log a failure; ``then`` says what happens next. Returns the error as text."""
        words, before = _words(error), self._records.get(request)
        # The log already has this traceback, for this or another request.
        known = before is not None and before.result in FAILURES and before.last_error == words
        mention = self._log.note(error, asyncio.get_running_loop().time())
        # The server's answer to our own write names the object and the reason; our frames add nothing.
        telling = passed_user_code(error) or not isinstance(error, StatusError)
        where = user_frames(error) if mention.traceback and telling and not known else None
        level, more = (logging.ERROR, mention.suffix) if mention.line else (logging.DEBUG, "")
        logger.log(level, "%s: %s: %s%s", request, then, words, more, exc_info=where)
        return words


def _words(error: BaseException) -> str:
    """An error as text, and what to write instead if it is a common mistake."""
    explanation = explanation_of(error)
    return f"{error_words(error)}. {explanation}" if explanation else error_words(error)
