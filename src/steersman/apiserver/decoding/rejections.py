"""Rejections of bodies and warnings about them, in kube-apiserver's words."""

from __future__ import annotations

from typing import Any, NamedTuple

from steersman.apiserver.errors import RequestRejected, bad_request
from steersman.apiserver.go_types.text import Text
from steersman.apiserver.registry.definition import Tree
from steersman.objects import GroupVersionKind

#: How many bytes of a body a message shows.
_SHOWN = 30
#: Groups whose internal types are in a package of another name.
_PACKAGES = {"": "core", "events.k8s.io": "core"}


def unrecognized(kind: str, why: str, sent: bytes | None) -> RequestRejected:
    """No object of any kind can be read from a body; ``sent`` is None for the result of a patch."""
    shown = "" if sent is None else f" ({_summary(sent)})"
    return bad_request(f"the object provided is unrecognized (must be of type {kind}): {why}{shown}")


def _summary(sent: bytes) -> str:
    if not sent:
        return "<empty>"
    shown = sent[:_SHOWN].decode("utf-8", "replace") if sent.startswith(b"{") else sent[:_SHOWN].hex()
    return f"{shown} ..." if len(sent) > _SHOWN else shown


def unhandled(given: GroupVersionKind, expected: GroupVersionKind, why: str) -> RequestRejected:
    """A body of one kind is no object of the expected one."""
    return bad_request(f'{given.kind} in version "{given.version}" cannot be handled as a {expected.kind}: {why}')


def other_version(version: Any, expected: GroupVersionKind) -> RequestRejected:
    """A body of the expected kind is in another version, as it declares."""
    return bad_request(
        f"the API version in the data ({version or ''}) does not match the expected API version "
        f"({expected.api_version})"
    )


def other_kind(given: GroupVersionKind, expected: GroupVersionKind, *, is_registered: bool) -> RequestRejected:
    """A body is of another kind, which kube-apiserver has registered or not."""
    if not is_registered:
        why = f'no kind "{given.kind}" is registered for version "{given.api_version}" in scheme "pkg/runtime/scheme.go:111"'
    elif given.group_kind == expected.group_kind:
        # Another version of the same kind can be converted, but is not expected here.
        return other_version(given.api_version, expected)
    else:
        package = _PACKAGES.get(expected.group) or expected.group.partition(".")[0]
        why = f"converting ({given.version}.{given.kind}) to ({package}.{expected.kind}): unknown conversion"
    return unhandled(given, expected, why)


class Decoded(NamedTuple):
    """A decoded object, and warnings for its sender."""

    tree: Tree
    warnings: list[str]


def warnings_of(text: Text, findings: list[str], given: GroupVersionKind, directive: str) -> list[str]:
    """The unknown and duplicate fields of a body as warnings; none if the directive is "Ignore", 400 if it is "Strict"."""
    if directive == "Ignore" or not (findings or text.twice):
        return []
    if directive != "Strict":
        return [*text.twice, *findings]
    if text.twice:
        findings = ["yaml: unmarshal errors:\n  " + "\n  ".join(text.twice), *findings]
    raise unhandled(given, given, f"strict decoding error: {', '.join(findings)}")
