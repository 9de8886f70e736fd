"""Named checks, and the answers that the kubelet and people read.

Guarantees
- A check that raises, returns False or takes too long fails with a message and does not affect the others.
- All checks run concurrently: an answer takes as long as the slowest check, at most the longest timeout.
- A passing check may return a message, which is shown next to its name.
- Answers look like kube-apiserver's: ``ok``, or one line per check with its result.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import re
from collections.abc import Awaitable, Callable, Collection
from typing import Literal

from steersman.debug import CheckResult
from steersman.errors import is_exit
from steersman.objects import nearest
from steersman.telemetry import error_words
from steersman.transport import ServerResponse

_log = logging.getLogger("steersman.manager")

#: Raises or returns False if something is wrong. A returned string is a warning. A synchronous check must not block.
HealthCheck = Callable[[], "bool | str | Awaitable[bool | str | None] | None"]

#: Seconds for one check. The kubelet waits for 1 by default.
CHECK_TIMEOUT = 0.8

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_TEXT = (("Content-Type", "text/plain; charset=utf-8"), ("X-Content-Type-Options", "nosniff"))


class Checks:
    """The checks of one kind: ``manager.health.add("database", ping)``."""

    def __init__(self, kind: Literal["health", "ready"]) -> None:
        self.kind: Literal["health", "ready"] = kind
        self._checks: dict[str, tuple[HealthCheck, float]] = {}
        self._last: dict[str, CheckResult] = {}

    def add(self, name: str, check: HealthCheck, *, timeout: float = CHECK_TIMEOUT) -> None:
        """Run ``check`` for every health request. It raises, or returns False, if something is wrong.

        A string that it returns is shown as a warning. An async check has ``timeout`` seconds.
        """
        if not _NAME.fullmatch(name):
            raise ValueError(f"check {name!r}: its name becomes part of a path; use letters, digits, '-', '_' and '.'")
        if name in self._checks:
            raise ValueError(f"duplicate {self.kind} check {name!r}: choose another name for one of them")
        if not callable(check):
            raise TypeError(
                f"check {name}: {check!r} is not callable; pass a function that raises if something is wrong"
            )
        self._checks[name] = (check, timeout)

    def remove(self, name: str) -> None:
        """Remove this check."""
        self._checks.pop(name, None)
        self._last.pop(name, None)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all checks, in the order in which they were added."""
        return tuple(self._checks)

    @property
    def last(self) -> tuple[CheckResult, ...]:
        """The last result of every check."""
        return tuple(self._last[name] for name in self._checks if name in self._last)

    async def run(self, only: Collection[str] | None = None) -> tuple[CheckResult, ...]:
        """Run all checks, or only these, concurrently."""
        names = [name for name in self._checks if only is None or name in only]
        results = await asyncio.gather(*(self._ask(name, *self._checks[name]) for name in names))
        for result in results:
            before = self._last.get(result.name)
            if not result.ok and (before is None or before.ok):
                # Every program starts unready.
                level = logging.WARNING if self.kind == "health" else logging.INFO
                _log.log(level, "%s check %s fails: %s", self.kind, result.name, result.message)
            if result.name in self._checks:
                self._last[result.name] = result
        return tuple(results)

    async def _ask(self, name: str, check: HealthCheck, seconds: float) -> CheckResult:
        message, note = "", ""
        try:
            async with asyncio.timeout(seconds):
                said = check()
                if inspect.isawaitable(said):
                    said = await said
            if said is False:
                message = "it said False"
            elif isinstance(said, str):
                note = " ".join(said.split())
        except TimeoutError as error:
            message = str(error) or f"it did not answer within {seconds:g} s"
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            message = "it was cancelled"
        except BaseException as error:
            # Any exception is the check's message.
            if is_exit(error):
                raise
            message = " ".join(error_words(error).partition(": ")[2].split()) or type(error).__name__
        return CheckResult(name=name, kind=self.kind, ok=not message, message=(message or note)[:1000])

    async def answer(self, path: str, *, verbose: bool, excluded: Collection[str] = ()) -> ServerResponse:
        """Answer ``healthz``, ``healthz/NAME`` and the same paths of ``readyz``."""
        title, _, single = path.partition("/")
        if single:
            return await self._answer_single(single, title)
        results = await self.run([name for name in self._checks if name not in excluded])
        good = all(result.ok for result in results)
        if good and not verbose:
            return _text(200, "ok")
        said = {result.name: result for result in results}
        lines = [_line(name, said.get(name)) for name in self._checks]
        unknown = [name for name in excluded if name not in self._checks]
        if unknown:
            lines.append(f"warn: some checks cannot be excluded: no check is named {', '.join(sorted(unknown))}")
        lines.append(f"{title} check {'passed' if good else 'failed'}\n")
        return _text(200 if good else 500, "\n".join(lines))

    async def _answer_single(self, name: str, title: str) -> ServerResponse:
        if name not in self._checks:
            meant = nearest(name, self._checks)
            hint = f"; did you mean {meant}?" if meant else ""
            return _text(404, f"no check {title}/{name}{hint} Available: {', '.join(self._checks)}\n")
        (result,) = await self.run([name])
        return _text(200, "ok") if result.ok else _text(500, f"{name} failed: {result.message}\n")


def _line(name: str, result: CheckResult | None) -> str:
    if result is None:
        return f"[+]{name} excluded: ok"
    if not result.ok:
        return f"[-]{name} failed: {result.message}"
    return f"[+]{name} ok ({result.message})" if result.message else f"[+]{name} ok"


def _text(status: int, words: str) -> ServerResponse:
    return ServerResponse(status=status, headers=(*_TEXT, ("Cache-Control", "no-store")), body=words.encode())
