"""``steersman explain``: what a running manager knows about one object, for a person at a terminal.

Guarantees
- It only asks. What cannot be answered is a sentence that says what to do next.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from urllib.parse import urlsplit

import msgspec

from steersman.aio import now
from steersman.cli.failure import Failure, Misuse
from steersman.controller import KeyRecord
from steersman.manager import Explanation, ManagerStatistics
from steersman.manager.words import count, duration, next_run
from steersman.objects import Key
from steersman.objects.errors import ApiError, ConnectionFailed
from steersman.objects.misuse import nearest
from steersman.transport import HttpTransport
from steersman.wire import Request

_LIMIT = 64 << 20
_NARROW, _WIDE = 60, 140
#: How many keys a sentence names.
_SHOWN = 5

_ENDED = {
    "success": "done",
    "requeue": "asked to run again soon",
    "requeue_after": "asked to run again later",
    "conflict": "conflict: somebody else wrote first",
    "error": "failed",
    "terminal_error": "failed for good: waits for a change",
}


def explain(kind: str, name: str, *, namespace: str | None = None, url: str) -> int:
    """Ask the manager at ``url`` and print its answer; the result is an exit code."""
    if urlsplit(url).scheme not in {"http", "https"} or not urlsplit(url).hostname:
        raise Misuse(f"--url {url} is no address: write one such as http://127.0.0.1:8080")
    keys = _keys(name, namespace)
    answer = asyncio.run(_ask(url.rstrip("/"), kind, keys))
    print("\n\n".join(answer))
    return 0


def _keys(name: str, namespace: str | None) -> list[Key]:
    """What may be meant, the likeliest first."""
    try:
        key = Key.parse(name)
    except ValueError as error:
        raise Misuse(str(error)) from error
    if key.namespace and namespace not in {None, key.namespace}:
        raise Misuse(f"{name} is in namespace {key.namespace}, and -n says {namespace}: leave one of them out")
    if key.namespace or namespace is not None:
        return [Key(namespace or key.namespace, key.name)]
    return [Key("default", key.name), key]


async def _ask(url: str, kind: str, keys: Sequence[Key]) -> list[str]:
    manager = _Manager(url)
    try:
        found = await _find(manager, kind, keys)
        seen = [each for each in found if each.record is not None or each.state != "idle"]
        if not seen:
            raise Failure(_never_seen(await manager.statistics(), found, keys))
        moment, colours, width = now(), sys.stdout.isatty(), _width()
        return ["\n".join(_lines(each, moment, colours=colours, width=width)) for each in seen]
    except ConnectionFailed as error:
        raise Failure(_nobody(url)) from error
    except ApiError as error:
        raise Failure(str(error)) from error
    except msgspec.MsgspecError as error:
        raise Failure(f"{url} answers, but not as a manager of this version of Steersman does: {error}") from error
    finally:
        await manager.close()


async def _find(manager: _Manager, kind: str, keys: Sequence[Key]) -> list[Explanation]:
    found = [each for key in keys for each in await manager.explain(kind, key)]
    if found:
        return found
    statistics = await manager.statistics()
    names = [each.name for each in statistics.controllers]
    spelled = [name for name in names if name.lower() == kind.lower()]
    if spelled:
        return [each for key in keys for each in await manager.explain(spelled[0], key)]
    meant = nearest(kind, names)
    there = f"; did you mean {meant}?" if meant else f"; there are {', '.join(names)}" if names else ""
    raise Failure(
        f"no controller of {statistics.name or manager.url} is called {kind} or reconciles such a kind{there}"
    )


class _Manager:
    """A running manager, over HTTP."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._transport = HttpTransport(url, timeout=10.0, connect_timeout=5.0)

    async def explain(self, kind: str, key: Key) -> list[Explanation]:
        """What its controllers know about a key; nothing if none reconciles the kind."""
        query = (("kind", kind), ("namespace", key.namespace), ("name", key.name))
        status, body = await self._get("/debug/explain.json", query)
        if status not in {200, 404}:
            raise Failure(self._refused(status, body))
        try:
            return msgspec.json.decode(body, type=list[Explanation])
        except msgspec.MsgspecError:
            if status == 404:
                raise Failure(_nobody(self.url)) from None
            raise

    async def statistics(self) -> ManagerStatistics:
        """All that it shows."""
        status, body = await self._get("/debug/statistics.json", ())
        if status != 200:
            raise Failure(self._refused(status, body))
        return msgspec.json.decode(body, type=ManagerStatistics)

    async def close(self) -> None:
        """Close the connection."""
        await self._transport.close()

    async def _get(self, path: str, query: tuple[tuple[str, str], ...]) -> tuple[int, bytes]:
        response = await self._transport.send(Request(method="GET", path=path, query=query))
        return response.status, await response.read(_LIMIT)

    def _refused(self, status: int, body: bytes) -> str:
        said = " ".join(body[:500].decode(errors="replace").split())
        return f"{self.url} answers {status}: {said or 'without a word'}"


# what to say


def _nobody(url: str) -> str:
    port = urlsplit(url).port or 8080
    return (
        f"no manager answers at {url}. Run one here (steersman run MODULE:manager --port {port}), or reach the one in a "
        f"cluster (kubectl port-forward deployment/NAME {port}:PORT) and name its address with --url"
    )


def _never_seen(statistics: ManagerStatistics, found: Iterable[Explanation], keys: Sequence[Key]) -> str:
    leader = statistics.leader
    if leader is not None and not leader.leading:
        return f"{statistics.name or 'this manager'} stands by; ask the process that leads: {leader.holder or 'nobody'}"
    names = {each.controller for each in found}
    known = [record.request.key for one in statistics.controllers if one.name in names for record in one.keys]
    said = f"{' and '.join(sorted(names))} never reconciled {keys[0]}, or not lately"
    near = nearest(keys[0].name, (key.name for key in known))
    if meant := [str(key) for key in known if key.name == near]:
        return f"{said}; did you mean {' or '.join(dict.fromkeys(meant[:_SHOWN]))}?"
    last = ", ".join(dict.fromkeys(str(key) for key in known[:_SHOWN]))
    return f"{said}; what it did last: {last}" if last else f"{said}; it has reconciled nothing yet"


def _lines(each: Explanation, moment: datetime, *, colours: bool, width: int) -> Iterator[str]:
    """One controller's knowledge, as lines."""
    title = f"{each.kind.rpartition(' ')[2]} {each.key}"
    yield f"{_painted(title, '1', colours=colours)}  controller {each.controller}"
    rows = [*_history(each.record, moment)] if each.record is not None else [("last run", "none yet", "")]
    rows.append(("next run", _next(each), ""))
    for label, words, colour in rows:
        for number, line in enumerate(_wrapped(words, width - 13)):
            head = _painted(f"{'' if number else label:<11}", "2", colours=colours)
            yield f"  {head}{_painted(line, colour, colours=colours and bool(colour))}".rstrip()


def _history(record: KeyRecord, moment: datetime) -> Iterator[tuple[str, str, str]]:
    failed = record.result in {"error", "terminal_error"}
    ended = "took too long" if record.timed_out else "crashed" if record.crashed else _ended(record)
    in_a_row = f", {count(record.failures, 'failure')} in a row" if failed and record.failures else ""
    when = f"{_ago(record.finished, moment)}, took {duration(record.seconds)}"
    yield "last run", f"{when}, {count(record.writes, 'write')}", ""
    for number, cause in enumerate(record.causes):
        yield "" if number else "because", str(cause), ""
    if record.causes.omitted:
        yield "", f"and {record.causes.omitted} more", ""
    yield "ended", f"{ended}{in_a_row}", "31" if failed else "32" if record.result == "success" else ""
    if record.last_error:
        when = "" if failed or record.last_error_at is None else f"{_ago(record.last_error_at, moment)}: "
        yield "last error", f"{when}{record.last_error}", "31" if failed else ""
    yield "in the log", f"reconcile_id={record.reconcile_id}", ""


def _ended(record: KeyRecord) -> str:
    return _ENDED[record.result]


def _next(each: Explanation) -> str:
    match each.state:
        case "running":
            return "it runs now"
        case "ready":
            return "as soon as a worker is free"
        case "delayed" | "idle":
            return next_run(each.next_run)


def _ago(then: datetime, moment: datetime) -> str:
    """How long ago; the two clocks may differ by a little."""
    seconds = (moment - then).total_seconds()
    return "just now" if seconds < 1 else f"{duration(seconds)} ago"


def _wrapped(text: str, width: int) -> list[str]:
    """Lines no longer than the terminal is wide; words that cannot be split stay whole, so that they can be copied."""
    # An error may quote what it likes; a terminal obeys some of it.
    safe = ("".join(letter if letter.isprintable() else " " for letter in line) for line in text.splitlines())
    lines = (textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False) or [""] for line in safe)
    return [line for wrapped in lines for line in wrapped] or [""]


def _width() -> int:
    return max(_NARROW, min(_WIDE, shutil.get_terminal_size((100, 24)).columns))


def _painted(text: str, colour: str, *, colours: bool) -> str:
    return f"\x1b[{colour}m{text}\x1b[0m" if colours else text
