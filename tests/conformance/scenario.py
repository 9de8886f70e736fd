"""Scenarios as data: what is asked of a server, step by step, and nothing about what it answers.

Words in braces are names that are unique to one play: ``{ns}`` and ``{ns2}`` are namespaces that exist, every other word
of `NAMES` is free for objects without a namespace; ``{hooks}`` and ``{ca}`` are the address and the certificate of
`conformance.hook_server`. Words with a dollar stand for what earlier answers held: ``$rv:a``,
``$uid:a``, ``$name:a``, ``$continue:a``, or any field, ``${a.spec.clusterIP}``, where ``a`` is the ``as_`` of the step;
``${a..}`` is the whole answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from conformance.hook_server import ADDRESS
from conformance.protobuf_encoding import Protobuf

#: What may stand in braces. Those of NAMESPACES are created before the first step.
NAMESPACES = ("ns", "ns2")
NAMES = (*NAMESPACES, "free", "free2", "u", "u2", "u3")
_WORDS = (*NAMES, *ADDRESS)

#: The rows of the table of behavior that scenarios name.
ROWS = frozenset(
    {
        "Discovery", "OpenAPI v3", "Health", "Table", "PartialObjectMetadata", "Status errors", "List chunking",
        "resourceVersion", "Watch stream", "Watch errors", "Selector transitions", "Bookmarks", "WatchList", "No-op writes",
        "Update", "Metadata", "generation", "Delete", "Propagation", "deletecollection", "Patch", "dryRun",
        "fieldValidation", "Subresources", "Selectors", "Namespaces", "Storage", "Negotiation", "Kinds", "Apply", "Webhooks",
        "Quotas", "Shards",
    }
)  # fmt: skip

PATCH_TYPES = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}

Body: TypeAlias = "Mapping[str, Any] | list[Any] | bytes | str | Protobuf | None"

_NAME = re.compile(rf"\{{({'|'.join(_WORDS)})\}}")
_CAPTURE = re.compile(r"\$(?:(rv|uid|name|continue):(\w+)|\{(\w+)\.([^}]+)\})")
_SHORT = {
    "rv": "metadata.resourceVersion",
    "uid": "metadata.uid",
    "name": "metadata.name",
    "continue": "metadata.continue",
}


@dataclass(frozen=True, slots=True)
class Call:
    """One request and its whole answer."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    body: Body = None
    as_: str = ""
    #: What of the body is compared; for answers that also tell of what others do.
    focus: Callable[[Any], Any] | None = None


@dataclass(frozen=True, slots=True)
class OpenWatch:
    """A watch that stays open under a name; its head is compared here, its frames where they are expected."""

    watch: str
    call: Call


@dataclass(frozen=True, slots=True)
class Frames:
    """So many frames of a watch; waits until they came."""

    watch: str
    count: int


@dataclass(frozen=True, slots=True)
class FramesUntil:
    """Frames of a watch up to and with the one whose object has this name and this annotation."""

    watch: str
    name: str
    annotation: str
    value: str
    #: The path of that object, if a step of the scenario annotates it.
    by: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Ends:
    """All frames up to the end of a watch that the server ends."""

    watch: str


@dataclass(frozen=True, slots=True)
class Close:
    """The end of a watch that the client ends."""

    watch: str


@dataclass(frozen=True, slots=True)
class Until:
    """A request, again and again until its answer has this status: for what a server takes in later than it says so."""

    call: Call
    status: int
    #: A part of the warnings that the answer has too.
    warning: str = ""
    #: What the answer's body satisfies too.
    holds: Callable[[Any], bool] | None = None


Step: TypeAlias = Call | OpenWatch | Frames | FramesUntil | Ends | Close | Until


@dataclass(frozen=True, slots=True)
class Scenario:
    """A sequence of steps with a name."""

    name: str
    steps: tuple[Step, ...]
    rows: tuple[str, ...] = ()
    #: Plays while nothing else does: it shows what others would disturb.
    alone: bool = False
    #: Plays, after all others, on servers that have forgotten what happened before.
    forgotten: bool = False
    #: The feature gates that are on, which plays it on servers of its own.
    gates: tuple[str, ...] = ()

    @property
    def literals(self) -> str:
        """All that the steps say themselves, as one text."""
        return "\n".join(repr(step) for step in self.steps)


def scenario(
    name: str,
    rows: str,
    *steps: Step | list[Step],
    alone: bool = False,
    forgotten: bool = False,
    gates: tuple[str, ...] = (),
) -> Scenario:
    """A scenario; `rows` are separated by commas, lists of steps are taken as their steps."""
    flat: list[Step] = []
    for step in steps:
        flat.extend(step if isinstance(step, list) else [step])
    named = tuple(row.strip() for row in rows.split(","))
    unknown = sorted(set(named) - ROWS)
    if unknown:
        raise ValueError(f"scenario {name}: there is no row {', '.join(unknown)} in conformance.scenario.ROWS")
    return Scenario(name, tuple(flat), named, alone, forgotten, gates)


def _call(
    method: str,
    path: str,
    body: Body = None,
    *,
    content: str = "application/json",
    accept: str = "",
    headers: tuple[tuple[str, str], ...] = (),
    as_: str = "",
    focus: Callable[[Any], Any] | None = None,
    **query: Any,
) -> Call:
    sent = [*headers]
    if accept:
        sent.append(("Accept", accept))
    if body is not None:
        sent.append(("Content-Type", content))
    pairs = tuple((name.rstrip("_"), str(value)) for name, value in query.items())
    return Call(method, path, pairs, tuple(sent), body, as_, focus)


def get(path: str, **options: Any) -> Call:
    """A GET; options that are no keyword of ours are the query."""
    return _call("GET", path, **options)


def post(path: str, body: Body, **options: Any) -> Call:
    """A POST, of JSON unless ``content`` says otherwise."""
    return _call("POST", path, body, **options)


def put(path: str, body: Body, **options: Any) -> Call:
    """A PUT."""
    return _call("PUT", path, body, **options)


def patch(path: str, body: Body, kind: str = "merge", **options: Any) -> Call:
    """A PATCH of one of PATCH_TYPES."""
    return _call("PATCH", path, body, content=PATCH_TYPES[kind], **options)


def delete(path: str, body: Body = None, **options: Any) -> Call:
    """A DELETE, with DeleteOptions if a body is given."""
    return _call("DELETE", path, body, **options)


def call(method: str, path: str, body: Body = None, **options: Any) -> Call:
    """A request of any other method."""
    return _call(method, path, body, **options)


def watch(name: str, path: str, **options: Any) -> OpenWatch:
    """Open a watch under a name."""
    return OpenWatch(name, _call("GET", path, watch="true", **options))


def frames(name: str, count: int) -> Frames:
    """Expect so many frames."""
    return Frames(name, count)


def ends(name: str) -> Ends:
    """Expect the end of a watch."""
    return Ends(name)


def initial(name: str) -> FramesUntil:
    """Expect the initial events of a watch, and the bookmark behind them."""
    return FramesUntil(name, "", "k8s.io/initial-events-end", "true")


def lookup(tree: Any, path: str) -> Any:
    """A value by a dotted path; numbers are indexes of lists. None if it is not there."""
    for part in path.split("."):
        if isinstance(tree, list) and part.lstrip("-").isdigit() and -len(tree) <= int(part) < len(tree):
            tree = tree[int(part)]
        elif isinstance(tree, dict) and part in tree:
            tree = tree[part]
        else:
            return None
    return tree


class Bindings:
    """The names and captured answers of one play."""

    def __init__(self, suffix: str) -> None:
        self.names = {name: f"{name}-{suffix}" for name in NAMES} | ADDRESS
        self.captured: dict[str, Any] = {}

    def text(self, text: str) -> str:
        """A text with its names and captures filled in; what was not captured is said to be missing."""
        text = _NAME.sub(lambda found: self.names[found[1]], text)
        return _CAPTURE.sub(lambda found: str(self._capture(found)), text)

    def _capture(self, found: re.Match[str]) -> Any:
        name, path = (found[2], _SHORT[found[1]]) if found[1] else (found[3], found[4])
        value = self.captured.get(name) if path == "." else lookup(self.captured.get(name), path)
        return f"missing-{name}-{path}" if value is None else value

    def tree(self, tree: Any) -> Any:
        """A tree with all its strings filled in; a string that is one capture becomes the value itself."""
        if isinstance(tree, str):
            found = _CAPTURE.fullmatch(tree)
            return self._capture(found) if found else self.text(tree)
        if isinstance(tree, Mapping):
            return {self.text(key): self.tree(value) for key, value in tree.items()}
        if isinstance(tree, list | tuple):
            return [self.tree(value) for value in tree]
        return tree

    def body(self, body: Body) -> bytes | None:
        """The bytes of a body."""
        if body is None or isinstance(body, bytes):
            return body
        if isinstance(body, str):
            found = _CAPTURE.fullmatch(body)
            whole = self._capture(found) if found else None
            return (json.dumps(whole) if isinstance(whole, dict) else self.text(body)).encode()
        if isinstance(body, Protobuf):
            return body.bytes_of(self.tree(body.tree))
        return json.dumps(self.tree(body)).encode()
