"""Bodies of requests: bytes in, a tree of the served kind out.

Guarantees
- The result has the definition's kind and types. For built-in kinds, unknown fields are dropped, and nulls and zeroes
  that the server does not print become absent; quantities, times and bytes have the server's printed form. Unknown
  fields of custom resources are kept, for pruning.
- Rejections have kube-apiserver's code and message. ``fieldValidation`` decides whether unknown and duplicate fields
  are rejected, reported as warnings or ignored.
- The cost of a body is bounded by its size: nothing nests deeper than `steersman.patches.MAX_DEPTH`, and aliases do not
  multiply.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from json import JSONDecodeError
from typing import Any, NamedTuple, NoReturn, cast

import msgspec

from steersman.apiserver import protobuf
from steersman.apiserver.decoding.custom_resource import read_custom
from steersman.apiserver.decoding.stored_size import check_storable
from steersman.apiserver.errors import RequestRejected, bad_request, too_large, unsupported_media_type
from steersman.apiserver.go_types.fit import count_fields, field_count, fits
from steersman.apiserver.go_types.reader import (
    SHOWN_MAX,
    TypedReader,
    Unreadable,
    as_pairs,
    duplicates,
    parse_pairs,
    plain,
    read_tree,
    tree_words,
)
from steersman.apiserver.go_types.shapes import shape_of
from steersman.apiserver.json_trees import check_names, check_values, decode_tree
from steersman.apiserver.registry.definition import Definition, Tree
from steersman.apiserver.workers import LARGE
from steersman.golang import cannot_unmarshal, json_syntax_problem, json_type, readable_json, too_large_number
from steersman.objects import GroupVersionKind
from steersman.patches import MAX_DEPTH, TooDeep, check_depth
from steersman.wire import JSON, PROTOBUF, YAML

#: The maximum length of a body, as in kube-apiserver.
BODY_MAX = 3 * 1024 * 1024
#: How many objects in a body could become an object too large to be stored.
_MANY_OBJECTS = 10_000
_SHOWN = 30
_ESCAPED_BYTES = re.compile("[\ud800-\udfff]")
#: An escape, which can become half of a surrogate pair.
_SURROGATE = re.compile(rb"\\[uU]")
#: The Go type into which every body is decoded first.
TYPE_META = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
_MEDIA_TYPE = re.compile(r"\s*([^\s;,]+/[^\s;,]+)\s*(?:;\s*[^\s;,=]+=(?:[^\s;,\"]+|\"[^\"]*\")\s*)*")
#: Groups whose internal types are in a package of another name.
_PACKAGES = {"": "core", "events.k8s.io": "core"}
#: Versions of bodies that no endpoint serves, but one accepts, and the version with the same fields.
_ACCEPTED = {
    GroupVersionKind("policy", "v1beta1", "Eviction"): GroupVersionKind("policy", "v1", "Eviction"),
}
#: Kinds that are registered but are not objects.
_OF_ALL_GROUPS = frozenset(
    GroupVersionKind("", "v1", kind)
    for kind in ("Status", "APIVersions", "APIGroup", "APIGroupList", "APIResourceList")
)


class Decoded(NamedTuple):
    """A decoded object, and warnings for its sender."""

    tree: Tree
    warnings: list[str]


class _Text(msgspec.Struct):
    """A body as JSON: its tree, the text that shows duplicate fields (if there is one), and the sent bytes."""

    #: Dropped where the text is read a second time: two trees of a dense body would take too much memory.
    tree: Any
    json: bytes
    sent: bytes
    #: Duplicate fields of a YAML text.
    twice: list[str]
    #: Go's message about a number that does not fit a double.
    too_large: str = ""
    #: A patched tree that is used up, as JSON, if it is small enough to be shown in a message.
    shown: bytes = b""


def decode_body(
    raw: bytes, content_type: str | None, definition: Definition, *, field_validation: str, limit: int = BODY_MAX
) -> Decoded:
    """Decode the object in a body. Raises `RequestRejected` if it is not of the definition's kind.

    ``field_validation`` is "Strict", "Warn" or "Ignore"; the limit is in bytes.
    """
    media_type = media_type_of(content_type)
    if len(raw) > limit:
        raise too_large(f"Request entity too large: limit is {limit}")
    kind = definition.gvk.kind
    if media_type == PROTOBUF:
        return _protobuf(raw, definition)
    if media_type != YAML:
        check_values(raw)
    text = _yaml_text(raw, kind) if media_type == YAML else _json_text(raw, kind)
    check_names(text.tree, len(raw))
    given = _type_meta(text, kind)
    if raw.count(b"{") + raw.count(b"null") > _MANY_OBJECTS:
        check_storable(definition, text.tree, raw)
    if definition.custom:
        return _custom(definition, text, given, field_validation)
    return _built_in(definition, text, given, field_validation)


def conform(definition: Definition, tree: Tree, twice: list[str], directive: str) -> list[str]:
    """Make a patched tree conform to its kind, in place, and return warnings. Raises `RequestRejected` if it cannot.

    A refused tree is as before, or empty if it is too large to be shown in a message.
    ``twice`` are the duplicate fields of the patch's text: see `said_twice`.
    """
    text = _Text(tree, b"", b"", [])
    given = _type_meta(text, definition.gvk.kind)
    try:
        decoded = (_custom if definition.custom else _built_in)(definition, text, given, directive, twice)
    except RequestRejected:
        if text.shown:
            tree.update(decode_tree(text.shown))
        raise
    if decoded.tree is not tree:
        tree.clear()
        tree.update(decoded.tree)
    return decoded.warnings


def said_twice(body: bytes) -> list[str]:
    """The messages about duplicate fields of a JSON text."""
    try:
        try:
            count = count_fields(decode_tree(body))
        except (msgspec.DecodeError, UnicodeDecodeError):
            body = readable_json(body)
            count = count_fields(decode_tree(body))
        return [] if field_count(body, count) else duplicates(parse_pairs(body))
    except (msgspec.DecodeError, JSONDecodeError, RecursionError):
        return []


def media_type_of(content_type: str | None) -> str:
    """The media type of a body; 415 if it is not supported."""
    if not content_type:
        return JSON
    match = _MEDIA_TYPE.fullmatch(content_type)
    given = match[1].lower() if match is not None else ""
    if given not in {JSON, YAML, PROTOBUF}:
        raise unsupported_media_type((JSON, YAML, PROTOBUF))
    return given


def _protobuf(raw: bytes, definition: Definition) -> Decoded:
    if definition.custom:
        raise unsupported_media_type((JSON, YAML))
    expected = definition.gvk
    try:
        envelope = protobuf.read_envelope(raw)
    except protobuf.Malformed as error:
        _unrecognized(expected.kind, str(error), raw)
    group, _, version = envelope.api_version.rpartition("/")
    if not version or "/" in group:
        group, version = expected.group, expected.version
    given = GroupVersionKind(group, version, envelope.kind or expected.kind)
    given = _ACCEPTED.get(given, given)
    shape = shape_of(given)
    if shape is None:
        _refuse_kind(expected, given)
    try:
        tree = protobuf.read_message(envelope.message, shape)
    except protobuf.Malformed as error:
        raise bad_request(_handled(given, expected, str(error))) from None
    if given != expected:
        _refuse_kind(expected, given)
    check_storable(definition, tree, raw)
    tree["kind"], tree["apiVersion"] = expected.kind, expected.api_version
    return Decoded(tree, [])


def _json_text(raw: bytes, kind: str) -> _Text:
    try:
        tree = decode_tree(raw)
        if raw.count(b"{") + raw.count(b"[") > MAX_DEPTH:
            check_depth(tree)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, TooDeep):
        problem_found = json_syntax_problem(raw, depth=MAX_DEPTH)
        if problem_found is not None:
            _unrecognized(kind, f"couldn't get version/kind; json parse error: {problem_found}", raw)
        # Invalid UTF-8 is not rejected: every such byte is read as a replacement character.
        text = readable_json(raw)
        # A number that does not fit a double would become null: the text is kept, and its decoder rejects it.
        too_large = too_large_number(text)
        try:
            return _Text(
                plain(parse_pairs(text)) if too_large else decode_tree(text), text, raw, [], too_large
            )
        except (msgspec.DecodeError, JSONDecodeError, RecursionError, ValueError):
            _unrecognized(kind, "couldn't get version/kind; json parse error: unexpected end of JSON input", raw)
    return _Text(tree, raw, raw, [])


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return _ESCAPED_BYTES.sub("\ufffd", value)
    if isinstance(value, dict):
        members = cast("Tree", value).items()
        return {_without_surrogates(name): _without_surrogates(inner) for name, inner in members}
    return [_without_surrogates(item) for item in cast("list[Any]", value)] if isinstance(value, list) else value


def _yaml_text(raw: bytes, kind: str) -> _Text:
    from steersman.apiserver.decoding.yaml_text import UnreadableYaml, read_yaml  # noqa: PLC0415 - few clients send YAML

    try:
        tree, twice = read_yaml(raw)
    except UnreadableYaml as error:
        _unrecognized(kind, str(error), raw)
    as_json = msgspec.json.encode(_without_surrogates(tree) if _SURROGATE.search(raw) else tree, order="sorted")
    del tree
    return _Text(decode_tree(as_json), as_json, raw, twice)


def _unrecognized(kind: str, why: str, raw: bytes | None, *, of_tree: str = "") -> NoReturn:
    shown = "" if raw is None else f" ({_summary(raw)})"
    cause = Unreadable(why, of_tree) if of_tree else None
    raise bad_request(f"the object provided is unrecognized (must be of type {kind}): {why}{shown}") from cause


def _summary(raw: bytes) -> str:
    if not raw:
        return "<empty>"
    shown = raw[:_SHOWN].decode("utf-8", "replace") if raw.startswith(b"{") else raw[:_SHOWN].hex()
    return f"{shown} ..." if len(raw) > _SHOWN else shown


def _type_meta(text: _Text, kind: str) -> GroupVersionKind:
    """The declared kind of a body, whose field names ignore case; empty where it declares none."""
    tree: Any = {} if text.tree is None else text.tree
    text.tree = tree
    # The result of a patch was never sent.
    sent = text.sent if text.json else None
    if not isinstance(tree, dict):
        why = cannot_unmarshal(json_type(tree), TYPE_META)
        _unrecognized(kind, f"couldn't get version/kind; json parse error: {why}", sent)
    found = {"apiversion": "", "kind": ""}
    for name, value in cast("Tree", tree).items():
        folded = name.lower()
        if folded not in found or value is None:
            continue
        if not isinstance(value, str):
            words = {
                list: ("array", "slice"),
                dict: ("object", "map"),
                bool: ("bool", "bool"),
                float: ("number", "float64"),
            }
            word, given = words.get(cast("Any", type(value)), ("number", "int64"))
            field = "kind" if folded == "kind" else "apiVersion"
            why = cannot_unmarshal(word, "string", f".{field}")
            of_tree = tree_words(given, "string", "string")
            _unrecognized(kind, f"couldn't get version/kind; json parse error: {why}", sent, of_tree=of_tree)
        found[folded] = value
    version = found["apiversion"]
    if version.count("/") > 1:
        _unrecognized(kind, f"unexpected GroupVersion string: {version}", sent)
    group, _, version = version.rpartition("/")
    return GroupVersionKind(group, version, found["kind"])


def _built_in(
    definition: Definition, text: _Text, given: GroupVersionKind, directive: str, twice: Sequence[str] = ()
) -> Decoded:
    expected = definition.gvk
    if not given.version and given.group in {"", expected.group}:
        given = GroupVersionKind(expected.group, expected.version, given.kind)
    given = GroupVersionKind(given.group, given.version, given.kind or expected.kind)
    given = _ACCEPTED.get(given, given)
    if given != expected:
        _read_other(expected, given, text)
        _refuse_kind(expected, given)
    shape = shape_of(expected)
    findings: list[str] = []
    tree: Tree = text.tree
    if shape is not None:
        count = fits(shape, tree)
        if count < 0 or text.too_large or (text.json and not field_count(text.json, count)):
            reader = TypedReader()
            is_reset = _is_reset(tree)
            tree = {}
            if not text.json:
                shown = msgspec.json.encode(text.tree)
                text.shown = shown if len(shown) <= SHOWN_MAX else b""
            try:
                tree = reader.read(_pairs(text), shape) if text.json else read_tree(reader, text.tree, shape)
            except Unreadable as error:
                raise bad_request(_handled(expected, expected, str(error))) from error
            findings = reader.findings
            if text.too_large:
                raise bad_request(_handled(expected, expected, text.too_large))
            if is_reset:
                tree["metadata"]["managedFields"] = []
    tree["kind"], tree["apiVersion"] = expected.kind, expected.api_version
    return Decoded(tree, _told(expected, text, [*twice, *findings], directive))


def _is_reset(tree: Tree) -> bool:
    """Keep empty managed fields: this empty list has a meaning, it clears all managers."""
    metadata: Any = tree.get("metadata")
    return isinstance(metadata, dict) and cast("Tree", metadata).get("managedFields") == []


def _pairs(text: _Text) -> Any:
    """The text of a body once more, with all its fields; its tree is dropped before."""
    text.tree = None
    try:
        return parse_pairs(text.json)
    except (UnicodeDecodeError, JSONDecodeError, RecursionError):
        return as_pairs(decode_tree(text.json))


def _custom(
    definition: Definition, text: _Text, given: GroupVersionKind, directive: str, twice: Sequence[str] = ()
) -> Decoded:
    expected = definition.gvk
    tree: Tree = text.tree
    if not given.kind:
        shown = text.sent if text.json else msgspec.json.encode(tree, order="sorted")
        why = f"Object 'Kind' is missing in '{shown.decode('utf-8', 'replace')}'"
        if directive == "Ignore":
            raise bad_request(_handled(expected, expected, why))
        _unrecognized(expected.kind, why, text.sent if text.json else None)
    findings: list[str] = []
    if text.json and not _is_printed(tree, text.json) and not field_count(text.json, count_fields(tree)):
        # The tree is dropped meanwhile: two of a dense body would take too much memory.
        del tree
        findings = duplicates(_pairs(text))
        tree = plain(parse_pairs(text.json)) if text.too_large else decode_tree(text.json)
    if given in _OF_ALL_GROUPS:
        # Its fields are known, but not here.
        raise _other_version(tree, expected)
    if text.too_large:
        raise bad_request(_handled(given, expected, text.too_large))
    try:
        has_form = given == expected and definition.strategy.has_form(tree)
        findings += read_custom(_schema(definition, given), tree, has_form=has_form)
    except Unreadable as error:
        raise bad_request(_handled(given, expected, str(error))) from None
    warnings = _told(given, text, [*twice, *findings], directive)
    # The kind's own rules check the version of a patch's result, and always its kind.
    if text.json and given.group_version != expected.group_version:
        raise _other_version(tree, expected)
    tree["kind"], tree["apiVersion"] = given.kind, given.api_version
    return Decoded(tree, warnings)


def _is_printed(tree: Tree, text: bytes) -> bool:
    """Whether a text is as short as its tree can be printed: then it holds no field twice."""
    return len(text) < LARGE and msgspec.json.encode(tree) == text


def _schema(definition: Definition, given: GroupVersionKind) -> Tree:
    """The schema of a version. Another version has none, so everything in it is unknown, except for another group."""
    if given.group != definition.gvk.group:
        return {"x-kubernetes-preserve-unknown-fields": True}
    return definition.schema() if given.version == definition.gvk.version else {}


def _other_version(tree: Tree, expected: GroupVersionKind) -> Exception:
    return bad_request(
        f"the API version in the data ({tree.get('apiVersion') or ''}) does not match the expected API version "
        f"({expected.api_version})"
    )


def _told(given: GroupVersionKind, text: _Text, findings: list[str], directive: str) -> list[str]:
    """The findings as warnings, or as a rejection."""
    if directive == "Ignore" or not (findings or text.twice):
        return []
    if directive != "Strict":
        return [*text.twice, *findings]
    if text.twice:
        findings = ["yaml: unmarshal errors:\n  " + "\n  ".join(text.twice), *findings]
    raise bad_request(_handled(given, given, f"strict decoding error: {', '.join(findings)}"))


def _handled(given: GroupVersionKind, expected: GroupVersionKind, why: str) -> str:
    return f'{given.kind} in version "{given.version}" cannot be handled as a {expected.kind}: {why}'


def _read_other(expected: GroupVersionKind, given: GroupVersionKind, text: _Text) -> None:
    """Decode a body of another kind as that kind first: its own mistakes are reported first."""
    shape = shape_of(given)
    if shape is not None:
        try:
            TypedReader().read(_pairs(text) if text.json else as_pairs(text.tree), shape)
        except Unreadable as error:
            raise bad_request(_handled(given, expected, str(error))) from None


def _is_registered(kind: GroupVersionKind) -> bool:
    """Whether a kind, or the kind of this list, is registered."""
    item = GroupVersionKind(kind.group, kind.version, kind.kind.removesuffix("List"))
    return shape_of(item) is not None or kind in _OF_ALL_GROUPS


def _refuse_kind(expected: GroupVersionKind, given: GroupVersionKind) -> NoReturn:
    if given.group_kind == expected.group_kind and _is_registered(given):
        # Another version of the same kind can be converted, but is not expected here.
        raise _other_version({"apiVersion": given.api_version}, expected)
    if not _is_registered(given):
        why = f'no kind "{given.kind}" is registered for version "{given.api_version}" in scheme "pkg/runtime/scheme.go:111"'
    else:
        package = _PACKAGES.get(expected.group) or expected.group.partition(".")[0]
        why = f"converting ({given.version}.{given.kind}) to ({package}.{expected.kind}): unknown conversion"
    raise bad_request(_handled(given, expected, why))
