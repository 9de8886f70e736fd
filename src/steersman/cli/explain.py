"""``steersman explain``: what a running manager has recorded about one object, on a terminal.

Guarantee: read-only. If there is no answer, one sentence says what to do next.
"""

from __future__ import annotations

import asyncio
import shutil
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from http import HTTPStatus
from urllib.parse import urlsplit

import msgspec

from steersman.aio import utc_now
from steersman.cli.console import show
from steersman.cli.failure import Failure, Misuse
from steersman.client import read_bounded_file
from steersman.controller import KeyRecord
from steersman.debug import Explanation, ManagerStatistics, count, duration, next_run
from steersman.errors import ApiError, ConnectionFailed
from steersman.objects import Key, nearest
from steersman.telemetry import painted, visible
from steersman.transport import HttpTransport, TlsMaterial
from steersman.wire import HttpRequest

_LIMIT = 64 << 20
_TOKEN_LIMIT = 1 << 20
_NARROW, _WIDE = 60, 140
#: How many keys a message names.
_SHOWN = 5

_ENDED = {
    "success": "done",
    "requeue": "requeued",
    "requeue_after": "requeued for later",
    "conflict": "conflict: another writer was first",
    "error": "failed",
    "terminal_error": "failed for good: waits for a change",
}


def explain(
    kind: str,
    name: str,
    *,
    namespace: str | None = None,
    url: str,
    token_file: str | None = None,
    certificate_authority: str | None = None,
) -> int:
    """Query the manager at ``url`` and print the result; returns an exit code."""
    if urlsplit(url).scheme not in {"http", "https"} or not urlsplit(url).hostname:
        raise Misuse(f"--url {url} is not a URL: write one such as http://127.0.0.1:8080")
    keys = _keys(name, namespace)
    token = _token(token_file) if token_file is not None else ""
    manager = _Manager(url.rstrip("/"), token=token, certificate_authority=certificate_authority)
    answer = asyncio.run(_ask(manager, kind, keys))
    show("\n\n".join(answer))
    return 0


def _keys(name: str, namespace: str | None) -> list[Key]:
    """The possible keys, most likely first."""
    try:
        key = Key.parse(name)
    except ValueError as error:
        raise Misuse(str(error)) from error
    if key.namespace and namespace not in {None, key.namespace}:
        raise Misuse(f"{name} is in namespace {key.namespace}, but -n is {namespace}: remove one of them")
    if key.namespace or namespace is not None:
        return [Key(namespace or key.namespace, key.name)]
    return [Key("default", key.name), key]


def _token(file: str) -> str:
    try:
        return read_bounded_file(file, limit=_TOKEN_LIMIT, pipe=True).decode("ascii").strip()
    except OSError as error:
        raise Failure(f"cannot read --token-file {file}: {error.strerror or error}") from error
    except UnicodeDecodeError:
        raise Failure(f"--token-file {file} contains no token: a token is ASCII text") from None


async def _ask(manager: _Manager, kind: str, keys: Sequence[Key]) -> list[str]:
    url = manager.url
    try:
        manager.open()
        explanations = await _find(manager, kind, keys)
        seen = [
            explanation for explanation in explanations if explanation.record is not None or explanation.state != "idle"
        ]
        if not seen:
            raise Failure(_never_seen(await manager.statistics(), explanations, keys))
        moment, width = utc_now(), _width()
        return ["\n".join(_lines(explanation, moment, width=width)) for explanation in seen]
    except ConnectionFailed as error:
        raise Failure(_unreachable(url)) from error
    except ApiError as error:
        raise Failure(str(error)) from error
    except msgspec.MsgspecError as error:
        raise Failure(f"{url} does not answer like a manager of this version of Steersman: {error}") from error
    finally:
        await manager.close()


async def _find(manager: _Manager, kind: str, keys: Sequence[Key]) -> list[Explanation]:
    explanations = [explanation for key in keys for explanation in await manager.explain(kind, key)]
    if explanations:
        return explanations
    statistics = await manager.statistics()
    names = [controller.name for controller in statistics.controllers]
    spelled = [name for name in names if name.lower() == kind.lower()]
    if spelled:
        return [explanation for key in keys for explanation in await manager.explain(spelled[0], key)]
    meant = nearest(kind, names)
    there = f"; did you mean {meant}?" if meant else f"; the controllers are {', '.join(names)}" if names else ""
    raise Failure(f"{statistics.name or manager.url} has no controller named {kind} or for such a kind{there}")


class _Manager:
    """A running manager, over HTTP."""

    def __init__(self, url: str, *, token: str = "", certificate_authority: str | None = None) -> None:
        self.url = url
        self._headers = (("Authorization", f"Bearer {token}"),) if token else ()
        self._tls = TlsMaterial(ca_file=certificate_authority) if certificate_authority else None
        self._transport: HttpTransport | None = None

    def open(self) -> None:
        """Prepare for sending; in a running loop."""
        self._transport = HttpTransport(self.url, tls=self._tls, timeout=10.0, connect_timeout=5.0)

    async def explain(self, kind: str, key: Key) -> list[Explanation]:
        """What its controllers know about a key; empty if none reconciles the kind."""
        query = (("kind", kind), ("namespace", key.namespace), ("name", key.name))
        status, body = await self._get("/debug/explain.json", query)
        if status not in {200, 404}:
            raise Failure(self._refused(status, body))
        try:
            return msgspec.json.decode(body, type=list[Explanation])
        except msgspec.MsgspecError:
            if status == 404:
                raise Failure(_unreachable(self.url)) from None
            raise

    async def statistics(self) -> ManagerStatistics:
        """All its statistics."""
        status, body = await self._get("/debug/statistics.json", ())
        if status != 200:
            raise Failure(self._refused(status, body))
        return msgspec.json.decode(body, type=ManagerStatistics)

    async def close(self) -> None:
        """Close the connection."""
        if self._transport is not None:
            await self._transport.close()

    async def _get(self, path: str, query: tuple[tuple[str, str], ...]) -> tuple[int, bytes]:
        assert self._transport is not None, "open() comes first"
        response = await self._transport.send(HttpRequest(method="GET", path=path, query=query, headers=self._headers))
        return response.status, await response.read(_LIMIT)

    def _refused(self, status: int, body: bytes) -> str:
        words = " ".join(body[:500].decode(errors="replace").split())
        if status == HTTPStatus.UNAUTHORIZED and not self._headers:
            words = "this manager reviews tokens; send one with --token-file <(kubectl create token NAME)"
        return f"{self.url} returned {status}: {words or 'without a message'}"


# messages


def _unreachable(url: str) -> str:
    port = urlsplit(url).port or 8080
    return (
        f"no manager answers at {url}. Start one here (steersman run MODULE:manager --port {port}), or reach one in a "
        f"cluster (kubectl port-forward deployment/NAME {port}:PORT) and pass its address with --url"
    )


def _never_seen(statistics: ManagerStatistics, explanations: Iterable[Explanation], keys: Sequence[Key]) -> str:
    if elsewhere := [each.elsewhere for each in explanations if each.elsewhere]:
        return f"another replica has {keys[0]}; ask it: {elsewhere[0]}"
    leader = statistics.leader
    if leader is not None and not leader.leading and statistics.shards is None:
        return f"{statistics.name or 'this manager'} is on standby; ask the leader: {leader.holder or 'none'}"
    names = {explanation.controller for explanation in explanations}
    known = [record.request.key for one in statistics.controllers if one.name in names for record in one.keys]
    words = f"{' and '.join(sorted(names))} has never reconciled {keys[0]}, or not recently"
    near = nearest(keys[0].name, (key.name for key in known))
    if meant := [str(key) for key in known if key.name == near]:
        return f"{words}; did you mean {' or '.join(dict.fromkeys(meant[:_SHOWN]))}?"
    last = ", ".join(dict.fromkeys(str(key) for key in known[:_SHOWN]))
    return f"{words}; it last reconciled {last}" if last else f"{words}; it has reconciled nothing yet"


def _lines(explanation: Explanation, moment: datetime, *, width: int) -> Iterator[str]:
    """One controller's explanation, as lines."""
    title = f"{explanation.kind.rpartition(' ')[2]} {explanation.key}"
    yield f"{painted(title, '1')}  controller {explanation.controller}"
    rows = [*_history(explanation.record, moment)] if explanation.record is not None else [("last run", "none yet", "")]
    if explanation.ready is not None:
        rows.insert(0, ("ready", str(explanation.ready), "32" if explanation.ready.status == "True" else "33"))
    rows.append(("next run", _next(explanation), ""))
    for label, words, color in rows:
        for number, line in enumerate(_wrapped(words, width - 13)):
            head = painted(f"{'' if number else label:<11}", "2")
            yield f"  {head}{painted(line, color)}".rstrip()


def _history(record: KeyRecord, moment: datetime) -> Iterator[tuple[str, str, str]]:
    failed = record.result in {"error", "terminal_error"}
    ended = "took too long" if record.timed_out else "crashed" if record.crashed else _ENDED[record.result]
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
    if record.loop:
        yield "hot loop", record.loop, "31"
    yield "in the log", f"reconcile_id={record.reconcile_id}", ""


def _next(explanation: Explanation) -> str:
    if explanation.elsewhere and explanation.state != "running":
        return f"in another replica: {explanation.elsewhere}"
    match explanation.state:
        case "running":
            return "running now"
        case "ready":
            return "as soon as a worker is free"
        case "delayed" | "idle":
            return next_run(explanation.next_run)


def _ago(then: datetime, moment: datetime) -> str:
    """How long ago; the two clocks may differ slightly."""
    seconds = (moment - then).total_seconds()
    return "just now" if seconds < 1 else f"{duration(seconds)} ago"


def _wrapped(text: str, width: int) -> list[str]:
    """Lines that fit the width of the terminal; long words stay whole, so that they can be copied."""
    safe = (visible(line) for line in text.splitlines())
    lines = (textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False) or [""] for line in safe)
    return [line for wrapped in lines for line in wrapped] or [""]


def _width() -> int:
    return max(_NARROW, min(_WIDE, shutil.get_terminal_size((100, 24)).columns))
