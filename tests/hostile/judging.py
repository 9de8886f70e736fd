"""What every answer must be, whatever was asked: a judge that remembers what was wrong and how to ask it again."""

from __future__ import annotations

import json
import logging
import shlex
from collections import Counter
from dataclasses import dataclass, field

import yaml
from conformance.protobuf_decoding import json_of

from steersman.wire import HttpRequest

#: The longest that an answer may take: in seconds of the processor, and in all, where others work too.
SLOWEST, SLOWEST_IN_ALL = 2.0, 30.0
#: What is answered where there is nothing, and no Status.
_TEXTS_OF_404 = (b"404 page not found\n", b"")
#: What kube-apiserver says about Namespaces and the kinds of RBAC, which it stores in its own way.
_NO_UNSAFE_DELETION = "no unsafe deleter provided, can not honor ignoreStoreReadErrorWithClusterBreakingPotential"


@dataclass(frozen=True)
class Exchange:
    """A request and what came of it; a watch's body is what came first."""

    request: HttpRequest
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    #: Of the processor, and in all.
    seconds: float
    in_all: float = 0.0
    #: What was logged at the time, as warnings or worse.
    logged: tuple[str, ...] = ()

    def header(self, name: str) -> str:
        return next((value for key, value in self.headers if key.lower() == name), "")


@dataclass
class Judge:
    """Looks at exchanges: ``judge.look(exchange)`` is what is wrong with it, or nothing."""

    slowest: list[tuple[float, str]] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    own_500s: Counter[str] = field(default_factory=Counter)
    count: int = 0
    #: Whether a parser of HTTP stands before the server, which refuses in its own words what is no HTTP.
    over_port: bool = False

    def look(self, exchange: Exchange) -> str:
        self.count += 1
        self.statuses[exchange.status] += 1
        self.slowest = sorted([*self.slowest, (exchange.seconds, curl(exchange.request)[:300])], reverse=True)[:3]
        if exchange.logged:
            return f"the log says: {exchange.logged[0]}"
        if exchange.seconds > SLOWEST or exchange.in_all > SLOWEST_IN_ALL:
            return f"it took {exchange.seconds:.1f} s of the processor, {exchange.in_all:.1f} s in all"
        for name, value in exchange.headers:
            if any(mark in name + value for mark in "\r\n\0"):
                return f"a header breaks its line: {name!r}: {value!r}"
        if 200 <= exchange.status < 300:
            return self._look_at_success(exchange)
        return self._look_at_failure(exchange)

    def _look_at_success(self, exchange: Exchange) -> str:
        form = exchange.header("content-type").partition(";")[0]
        is_stream = exchange.header("transfer-encoding") == "stream"
        if exchange.request.method == "HEAD" or form != "application/json" or is_stream:
            return ""
        try:
            json.loads(exchange.body)
        except ValueError as error:
            return f"the body is no JSON: {error}"
        return ""

    def _look_at_failure(self, exchange: Exchange) -> str:  # noqa: PLR0911 - one a mistake
        status, body = exchange.status, exchange.body
        if status in {301, 304} or exchange.request.method == "HEAD":
            return ""
        if status == 404 and body in _TEXTS_OF_404:
            return ""
        if exchange.request.path.startswith("/openapi/") and not body:
            # kube-apiserver says nothing there
            return ""
        if self.over_port and status == 400 and exchange.header("content-type").startswith("text/plain"):
            return ""
        try:
            is_yaml = exchange.header("content-type").startswith("application/yaml")
            tree = yaml.safe_load(body) if is_yaml else json.loads(json_of(body))
        except (ValueError, yaml.YAMLError):
            return f"{status} with a body that is no Status: {body[:200]!r}"
        if tree.get("code") != status or tree.get("status") != "Failure" or not isinstance(tree.get("message"), str):
            return f"{status} with a Status that does not say so: {body[:300]!r}"
        if tree.get("kind") != "Status" and status != 504:
            return f"{status} with something else than a Status: {body[:300]!r}"
        if status == 500 and (not tree.get("reason") or tree["message"].endswith(_NO_UNSAFE_DELETION)):
            # kube-apiserver's own 500, in its words
            self.own_500s[tree["message"][:60]] += 1
            return ""
        if status >= 500 and status != 504:
            return f"{status}: {tree['message'][:300]}"
        return ""

    def told(self) -> str:
        """Figures in one line each."""
        codes = ", ".join(f"{code}: {number}" for code, number in sorted(self.statuses.items()))
        slow = "\n".join(f"  {seconds * 1000:.0f} ms {line[:160]}" for seconds, line in self.slowest)
        own = f"\n500s in the engine's words: {dict(self.own_500s)}" if self.own_500s else ""
        return f"{self.count} requests; {codes}\nslowest:\n{slow}{own}"


class LoggedHandler(logging.Handler):
    """Collects what is logged as a warning or worse."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self._texts.append(logging.Formatter("%(message)s").format(record))

    def take(self) -> tuple[str, ...]:
        texts, self._texts = self._texts, []
        return tuple(texts)


def curl(request: HttpRequest) -> str:
    """A request as a line that can be read, and pasted where it is short."""
    words = ["curl", "-X", request.method, request.target]
    for name, value in request.headers:
        words += ["-H", f"{name}: {value}"]
    if request.body is not None:
        shown = request.body if len(request.body) <= 2000 else request.body[:2000] + b"..."
        words += ["--data-binary", shown.decode("utf-8", "backslashreplace") + f" ({len(request.body)} bytes)"]
    return shlex.join(words)
