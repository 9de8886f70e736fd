"""The difference between two states of an object, in lines that read like its YAML. Pure.

Guarantees
- Only differences are shown, below the fields that lead to them. List items are matched by the field that names them,
  if there is one.
- Bookkeeping (versions, generations, times of conditions, managed fields, hashes of intents) is never shown.
- No secret value is ever shown, in lines or in trees: `visible` runs before everything else.
"""

from __future__ import annotations

import difflib
import itertools
import json
from collections.abc import Iterable, Iterator
from typing import Any, Self, cast

import msgspec

from steersman.controller import INTENT_ANNOTATION
from steersman.objects import SERVER_BOOKKEEPING
from steersman.objects.secret_values import HIDDEN, hide
from steersman.plan.trees import Tree, naming_field, part

_ABSENT: Any = object()
#: Fields of a status with times and generations.
_TIMES = frozenset({"lastTransitionTime", "lastUpdateTime", "lastProbeTime", "lastHeartbeatTime", "observedGeneration"})
#: Annotations in which a writer keeps what it has applied.
_BOOKKEEPING = frozenset({"kubectl.kubernetes.io/last-applied-configuration", INTENT_ANNOTATION})
_TEXT_CONTEXT = 2


class Line(msgspec.Struct, frozen=True):
    """One line: ``-`` for the old state, ``+`` for the new one, a space for context."""

    sign: str
    depth: int
    words: str

    def __str__(self) -> str:
        return f"{self.sign} {'  ' * self.depth}{self.words}".rstrip()


# the visible part of an object


def visible(before: Tree | None, after: Tree | None) -> tuple[Tree | None, Tree | None]:
    """Both states without server-managed fields, and without secret values, which show only whether they changed."""
    one = _masked(_without_bookkeeping(before), None)
    return one, _masked(_without_bookkeeping(after), one)


def _without_bookkeeping(tree: Tree | None) -> Tree | None:
    if tree is None:
        return None
    shown = {name: _without_times(value) if name == "status" else value for name, value in tree.items()}
    metadata = {name: value for name, value in part(tree, "metadata").items() if name not in SERVER_BOOKKEEPING}
    if annotations := metadata.get("annotations"):
        kept = {name: value for name, value in annotations.items() if name not in _BOOKKEEPING}
        metadata["annotations"] = kept
        if not kept:
            del metadata["annotations"]
    if owners := metadata.get("ownerReferences"):
        metadata["ownerReferences"] = [_owner(owner) for owner in owners]
    shown["metadata"] = metadata
    return shown


def _owner(reference: Tree) -> str:
    words = f"{reference.get('kind')} {reference.get('name')}"
    return f"{words} (controller)" if reference.get("controller") else words


def _without_times(value: Any) -> Any:
    match value:
        case dict():
            tree = cast("Tree", value)
            return {name: _without_times(each) for name, each in tree.items() if name not in _TIMES}
        case list():
            return [_without_times(each) for each in cast("list[Any]", value)]
        case _:
            return value


def _masked(tree: Tree | None, before: Tree | None) -> Tree | None:
    """An object whose secret values show only whether they changed; ``before`` is already masked."""
    return None if tree is None else _compared(hide(tree, mask=_Hidden), before)


def _compared(value: Any, was: Any) -> Any:
    """The value, with hidden values that say whether they changed."""
    match value:
        case _Hidden():
            return value.since(was)
        case dict():
            old = cast("Tree", was) if isinstance(was, dict) else {}
            return {name: _compared(each, old.get(name)) for name, each in cast("Tree", value).items()}
        case list():
            items, olds = cast("list[Any]", value), cast("list[Any]", was) if isinstance(was, list) else []
            return [_compared(each, old) for each, old in itertools.zip_longest(items, olds[: len(items)])]
        case _:
            return value


class _Hidden(str):
    """A hidden value; it keeps the real value for comparison only."""

    __slots__ = ("_real",)
    _real: Any

    def __new__(cls, real: Any, shown: str = HIDDEN) -> Self:
        made = super().__new__(cls, shown)
        made._real = real
        return made

    def since(self, was: Any) -> _Hidden:
        """The same value, which says whether it changed."""
        changed = isinstance(was, _Hidden) and was._real != self._real  # noqa: SLF001 - one of us
        return _Hidden(self._real, "(changed)") if changed else self


# lines


def object_diff(before: Tree | None, after: Tree | None) -> list[str]:
    """The visible difference between two states of an object, without the fields that name its kind."""
    one, other = visible(before, after)
    return [str(line) for line in diff_lines(_content(one), _content(other))]


def _content(tree: Tree | None) -> Tree | None:
    return None if tree is None else {name: value for name, value in tree.items() if name not in {"apiVersion", "kind"}}


def diff_lines(before: Tree | None, after: Tree | None, *, depth: int = 0) -> list[Line]:
    """The difference between two states; the whole object if there is only one."""
    if before is None or after is None:
        sign = "+" if before is None else "-"
        return [line for name, value in (after or before or {}).items() for line in _whole(sign, name, value, depth)]
    return list(_fields(before, after, depth))


def _fields(before: Tree, after: Tree, depth: int) -> Iterator[Line]:
    for name in dict.fromkeys((*before, *after)):
        was, becomes = before.get(name, _ABSENT), after.get(name, _ABSENT)
        if was is _ABSENT:
            yield from _whole("+", name, becomes, depth)
        elif becomes is _ABSENT:
            yield from _whole("-", name, was, depth)
        else:
            yield from _field(name, was, becomes, depth)


def _field(name: str, was: Any, becomes: Any, depth: int) -> Iterator[Line]:
    if was == becomes:
        return
    inside: Iterable[Line]
    if isinstance(was, dict) and isinstance(becomes, dict):
        inside = _fields(cast("Tree", was), cast("Tree", becomes), depth + 1)
    elif isinstance(was, list) and isinstance(becomes, list):
        inside = _items(cast("list[Any]", was), cast("list[Any]", becomes), depth + 1)
    elif isinstance(was, str) and isinstance(becomes, str) and ("\n" in was or "\n" in becomes):
        yield Line(" ", depth, f"{_key(name)}: |")
        yield from _text(was, becomes, depth + 1)
        return
    else:
        yield from _whole("-", name, was, depth)
        yield from _whole("+", name, becomes, depth)
        return
    lines = list(inside)
    if lines:  # empty if named items only changed places
        yield Line(" ", depth, f"{_key(name)}:")
        yield from lines


def _text(was: str, becomes: str, depth: int) -> Iterator[Line]:
    one, other = was.splitlines(), becomes.splitlines()
    for group in difflib.SequenceMatcher(a=one, b=other, autojunk=False).get_grouped_opcodes(_TEXT_CONTEXT):
        for tag, from_, to, from_other, to_other in group:
            if tag == "equal":
                yield from (Line(" ", depth, line) for line in one[from_:to])
                continue
            yield from (Line("-", depth, line) for line in one[from_:to])
            yield from (Line("+", depth, line) for line in other[from_other:to_other])


def _items(was: list[Any], becomes: list[Any], depth: int) -> Iterator[Line]:
    naming = naming_field(was, becomes)
    if naming is None:
        yield from _sequence(was, becomes, depth)
        return
    old, new = ({item[naming]: item for item in items} for items in (was, becomes))
    for value in dict.fromkeys((*old, *new)):
        if value not in old:
            yield from _item("+", new[value], depth)
        elif value not in new:
            yield from _item("-", old[value], depth)
        elif lines := list(_fields(_but(old[value], naming), _but(new[value], naming), depth + 1)):
            yield Line(" ", depth, f"- {naming}: {_scalar(value)}")
            yield from lines


def _but(tree: Tree, name: str) -> Tree:
    return {each: value for each, value in tree.items() if each != name}


def _sequence(was: list[Any], becomes: list[Any], depth: int) -> Iterator[Line]:
    one, other = ([json.dumps(item, sort_keys=True) for item in items] for items in (was, becomes))
    for tag, from_, to, from_other, to_other in difflib.SequenceMatcher(a=one, b=other, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        old, new = was[from_:to], becomes[from_other:to_other]
        if len(old) == len(new) and all(isinstance(each, dict) for each in (*old, *new)):
            for number, (each, now) in enumerate(zip(old, new, strict=True), from_other + 1):
                yield Line(" ", depth, f"- # item {number}")
                yield from _fields(each, now, depth + 1)
            continue
        for each in old:
            yield from _item("-", each, depth)
        for each in new:
            yield from _item("+", each, depth)


def _whole(sign: str, name: str, value: Any, depth: int) -> Iterator[Line]:
    match value:
        case dict() if value:
            yield Line(sign, depth, f"{_key(name)}:")
            for each, inside in cast("Tree", value).items():
                yield from _whole(sign, each, inside, depth + 1)
        case list() if value:
            yield Line(sign, depth, f"{_key(name)}:")
            for each in cast("list[Any]", value):
                yield from _item(sign, each, depth + 1)
        case str() if "\n" in value:
            yield Line(sign, depth, f"{_key(name)}: |")
            yield from (Line(sign, depth + 1, line) for line in value.splitlines())
        case _:
            yield Line(sign, depth, f"{_key(name)}: {_scalar(value)}")


def _item(sign: str, value: Any, depth: int) -> Iterator[Line]:
    if not isinstance(value, dict) or not value:
        yield Line(sign, depth, f"- {_scalar(value)}")
        return
    lines = [line for name, inside in cast("Tree", value).items() for line in _whole(sign, name, inside, depth + 1)]
    # the first field is on the line of the dash
    yield Line(sign, depth, f"- {lines[0].words}")
    yield from lines[1:]


def _key(name: str) -> str:
    return _scalar(name)


def _scalar(value: Any) -> str:
    """A value as YAML, on one line."""
    if isinstance(value, str) and _is_plain(value):
        return str(value)
    return json.dumps(value, ensure_ascii=False)


def _is_plain(text: str) -> bool:
    if not text or not text.isprintable() or text != text.strip() or text[0] in "!&*{}[],#|>@`\"'%-?:":
        return False
    if ": " in text or " #" in text or text.endswith(":"):
        return False
    try:
        float(text)
    except ValueError:
        return text.lower() not in {"true", "false", "null", "yes", "no", "on", "off", "~"}
    return False
