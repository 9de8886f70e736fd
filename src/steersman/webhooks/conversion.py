"""Conversion between the versions of a kind, by typed functions between a hub and its spokes.

Guarantees
- A round trip loses no field, whether or not a type declares it. Fields that the other version lacks are saved in the
  annotation `SAVED_FIELDS` of the converted object, and the reverse conversion restores them. A later edit wins over a
  saved value.
- An edited annotation cannot make an object unreadable: fields that would make it invalid are not restored.
- Metadata other than labels and annotations passes unchanged, as the API server requires.
- User code never sees an object without its name or without a required part. kube-apiserver sends such objects when it prunes
  fields for server-side apply: they are converted as far as they are there (see `steersman.schemas.versions`).
- If one object cannot be converted, the whole review fails with its name and the reason, as the API server requires.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any, Final, Generic, TypeVar, cast

import msgspec

from steersman import schemas
from steersman.objects import GroupKind, Object, Resource, decode, decoder_for, encode_custom, to_json
from steersman.patches import json_equal
from steersman.schemas.names import label_value, qualified_name
from steersman.webhooks.saved_fields import Saved, restored, saved_fields

HubT = TypeVar("HubT", bound=Object)
SpokeT = TypeVar("SpokeT", bound=Object)
Tree = dict[str, Any]

#: The annotation with the fields that an object has in other versions and lacks in this one, by version.
SAVED_FIELDS: Final = "steersman.dev/saved-fields"
#: Metadata that a conversion may change.
_MAY_CHANGE: Final = ("labels", "annotations")


class NotConvertible(Exception):
    """Raised if an object cannot be converted; the message says why."""


class VersionConverter(Generic[SpokeT, HubT]):
    """Converts between a further version of a kind (the spoke) and its main version (the hub).

    Pass ``VersionConverter(OldSite, Site, to_hub=upgraded, to_spoke=downgraded)`` to ``manager.add``. Each further
    version needs one converter to the same hub.

    The functions pass the metadata on (``metadata=old.metadata``) and depend on nothing but the object. They need not
    save the fields that the other version lacks.
    """

    def __init__(
        self,
        spoke: type[SpokeT],
        hub: type[HubT],
        *,
        to_hub: Callable[[SpokeT], HubT],
        to_spoke: Callable[[HubT], SpokeT],
    ) -> None:
        for cls in (spoke, hub):
            if not (isinstance(cls, type) and issubclass(cls, Resource)):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise TypeError(f"VersionConverter: {cls!r} is not a Resource; only custom resources have conversions")
        if spoke.gvk().group_kind != hub.gvk().group_kind:
            raise TypeError(
                f"VersionConverter: {spoke.__name__} is a {spoke.gvk().group_kind}, and {hub.__name__} a"
                f" {hub.gvk().group_kind}; both must be versions of one kind"
            )
        if spoke.gvk() == hub.gvk():
            raise TypeError(f"VersionConverter: both classes have version {hub.gvk().version}; give each its own")
        for function in (to_hub, to_spoke):
            if inspect.iscoroutinefunction(function):
                raise TypeError(
                    f"VersionConverter: {function.__name__} is async, but a conversion cannot wait; write def"
                )
        self.spoke, self.hub = spoke, hub
        self.to_hub, self.to_spoke = to_hub, to_spoke

    def __repr__(self) -> str:
        return f"<converter of {self.hub.__name__}: {self.spoke.gvk().version} <-> {self.hub.gvk().version}>"


AnyConverter = VersionConverter[Any, Any]


class Conversions:
    """All converters, by kind."""

    def __init__(self, converters: Iterable[AnyConverter] = ()) -> None:
        self._hubs: dict[GroupKind, type[Object]] = {}
        self._spokes: dict[GroupKind, dict[str, AnyConverter]] = {}
        for converter in converters:
            self._add(converter)

    def _add(self, converter: AnyConverter) -> None:
        kind = converter.hub.gvk().group_kind
        hub = self._hubs.setdefault(kind, converter.hub)
        if hub is not converter.hub:
            raise ValueError(
                f"{kind} has two hubs, {hub.gvk().version} and {converter.hub.gvk().version}; convert all versions to one"
            )
        spokes = self._spokes.setdefault(kind, {})
        if converter.spoke.gvk().version in spokes:
            raise ValueError(
                f"{kind} has two converters of version {converter.spoke.gvk().version}; remove one of them"
            )
        spokes[converter.spoke.gvk().version] = converter

    def __bool__(self) -> bool:
        return bool(self._hubs)

    def versions(self) -> dict[GroupKind, list[type[Object]]]:
        """The classes of each kind, the hub first."""
        return {
            kind: [hub, *(spoke.spoke for spoke in self._spokes[kind].values())] for kind, hub in self._hubs.items()
        }

    def convert(self, raw: bytes, desired: str) -> bytes:
        """Convert one object to the apiVersion ``desired``. Raises `NotConvertible`; errors of user code pass through."""
        try:
            head = _read_head(raw)
        except _UNREADABLE as error:
            raise NotConvertible(f"the object cannot be read: {error}") from None
        for step in self._way(head, desired):
            raw = step(raw)
        return raw

    def _way(self, head: _Head, desired: str) -> list[_Step]:
        """The steps to another version: none, one, or two through the hub."""
        group, _, current = head.api_version.rpartition("/")
        wanted_group, _, wanted = desired.rpartition("/")
        kind = GroupKind(group, head.kind)
        if group != wanted_group or kind not in self._hubs:
            raise NotConvertible(f"no converter is registered for {kind}")
        hub, spokes = self._hubs[kind].gvk().version, self._spokes[kind]
        for version in (current, wanted):
            if version != hub and version not in spokes:
                known = ", ".join((hub, *spokes))
                raise NotConvertible(f"{kind} has no version {version}; its versions are {known}")
        if current == wanted:
            return []
        steps: list[_Step] = []
        if current != hub:
            steps.append(_Step(spokes[current], up=True))
        if wanted != hub:
            steps.append(_Step(spokes[wanted], up=False))
        return steps


class _Step:
    """One conversion between hub and spoke."""

    def __init__(self, converter: AnyConverter, *, up: bool) -> None:
        ways = (converter.to_hub, converter.to_spoke)
        classes = (converter.spoke, converter.hub)
        self._source, self._target = classes if up else classes[::-1]
        self._there, self._back = ways if up else ways[::-1]

    def __call__(self, raw: bytes) -> bytes:
        """Convert an object. Fields that the other version lacks are saved in the annotation."""
        if not _looks_whole(_read_head(raw)) and self._lacks_parts(tree := msgspec.json.decode(raw)):
            return self._incomplete(tree)
        try:
            quick = self._quick(raw)
            return msgspec.json.encode(self._careful(msgspec.json.decode(raw))) if quick is None else quick
        except Exception:
            tree = msgspec.json.decode(raw)
            if not self._lacks_parts(tree):
                raise
        return self._incomplete(tree)

    def _incomplete(self, tree: Tree) -> bytes:
        """Convert an object without some parts. One that lacks only the name that the server will generate is whole."""
        given = tree.get("metadata")
        metadata: Tree = cast("Tree", given) if isinstance(given, dict) else {}
        prefix = metadata.get("generateName")
        named: Tree = tree | {"metadata": {"name": f"{prefix}absent", **metadata}} if prefix else tree
        if self._lacks_parts(named):
            return msgspec.json.encode(self._partial(tree))
        made = msgspec.json.decode(self(msgspec.json.encode(named)))
        del made["metadata"]["name"]
        return msgspec.json.encode(made)

    def _lacks_parts(self, tree: Tree) -> bool:
        return schemas.lacks_parts(tree, schemas.readable_schema(self._source))

    def _partial(self, tree: Tree) -> Tree:
        """Convert an object that lacks required parts, as far as it is there."""
        target = self._target.gvk()
        made = schemas.convert_parts(
            tree,
            schemas.readable_schema(self._source),
            lambda whole: _converted(whole, self._there, self._source, self._target),
        )
        return made | {"apiVersion": target.api_version, "kind": target.kind}

    def _quick(self, raw: bytes) -> bytes | None:
        """Convert an object without saved fields. Returns None if the conversion would lose a field, which is rare.

        Decoding drops the fields that a type does not declare. They are missing in the result of the reverse conversion,
        so the comparison with the original finds them.
        """
        try:
            given = cast("Object", decoder_for(self._source).decode(raw))
            if SAVED_FIELDS in (getattr(given.metadata, "annotations", None) or ()):
                return None
        except Exception:  # noqa: BLE001 - a type may raise anything; `_careful` raises it again
            return None
        made = self._there(given)
        try:
            result = _encode(made)
            back = _encode(self._back(decoder_for(self._target).decode(result)))
            before, after = _read_head(raw), _read_head(result)
            is_target = (after.api_version, after.kind) == (self._target.gvk().api_version, self._target.gvk().kind)
            return (
                result
                if is_target and _same(bytes(after.metadata), bytes(before.metadata)) and _same(back, raw)
                else None
            )
        except Exception:  # noqa: BLE001 - the reverse function may raise anything; `_careful` raises it again
            return None

    def _careful(self, tree: Tree) -> Tree:
        """Convert an object, restore its saved fields, and save the fields that it loses."""
        source, kept = _without_saved(tree)
        mine = kept.pop(self._target.gvk().version, [])
        result = _converted(source, self._there, self._source, self._target)
        if mine and (whole := self._restored(result, mine)) is not None:
            result, back = whole
        else:
            if mine:
                # a user edited the annotation: its fields stay in it
                kept[self._target.gvk().version] = mine
            back = _converted(result, self._back, self._target, self._source)
        lost = saved_fields(back, source)
        if lost:
            kept[self._source.gvk().version] = lost
        return _with_saved(result, kept)

    def _restored(self, result: Tree, saved: list[Saved]) -> tuple[Tree, Tree] | None:
        """The result with its saved fields, and the way back from it; None if they make no valid object."""
        try:
            whole = restored(result, saved)
            back = _converted(whole, self._back, self._target, self._source)
        except Exception:  # noqa: BLE001 - users can edit the annotation, and the function may raise anything
            return None
        return (whole, back) if _is_acceptable(whole, result) else None


class _Head(msgspec.Struct, rename="camel"):
    """The identity of an object."""

    api_version: str
    kind: str = ""
    metadata: msgspec.Raw = msgspec.Raw(b"null")
    spec: msgspec.Raw = msgspec.Raw(b"null")


def _looks_whole(head: _Head) -> bool:
    """Whether an object has a spec and a name; a name in an owner reference is mistaken for one."""
    return bytes(head.spec) != b"null" and b'"name":' in bytes(head.metadata)


_read_head = msgspec.json.Decoder(_Head).decode
#: In the order of Go: most objects of an API server can be compared as bytes.
_encode = msgspec.json.Encoder(enc_hook=encode_custom, order="sorted").encode
_UNREADABLE: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def _same(printed: bytes, raw: bytes) -> bool:
    """Whether a text of `_encode` is the same JSON as another text."""
    if printed == raw:
        return True
    tree = msgspec.json.decode(raw)
    return printed == _encode(tree) or json_equal(msgspec.json.decode(printed), tree)


def _converted(tree: Tree, function: Callable[[Any], Any], source: type[Object], target: type[Object]) -> Tree:
    """Call a user's function. Returns its result with the metadata of the argument."""
    returned = function(decode(source, msgspec.json.encode(tree)))
    name: str = getattr(function, "__name__", "the conversion")
    if not isinstance(returned, target):
        raise NotConvertible(f"{name} returned a {type(returned).__name__}; it must return a {target.__name__}")
    result = to_json(returned)
    given: Tree = tree.get("metadata") or {}
    made: Tree = result.get("metadata") or {}
    metadata = dict(given)
    if made.get("name") == given.get("name") and made:
        for field in _MAY_CHANGE:
            metadata.pop(field, None)
            if field in made:
                metadata[field] = made[field]
    return {
        "apiVersion": target.gvk().api_version,
        "kind": target.gvk().kind,
        "metadata": metadata,
        **{field: value for field, value in result.items() if field not in {"apiVersion", "kind", "metadata"}},
    }


def _is_acceptable(tree: Tree, converted: Tree) -> bool:
    """Whether the API server accepts an object with restored fields instead of the converted one."""
    metadata: Tree = tree["metadata"]
    labels: dict[str, str] = metadata.get("labels") or {}
    annotations: dict[str, str] = metadata.get("annotations") or {}
    return (
        _fixed(tree) == _fixed(converted)
        and not any(qualified_name(name) or label_value(value) for name, value in labels.items())
        and not any(qualified_name(name.lower()) for name in annotations)
    )


def _fixed(tree: Tree) -> Tree:
    """What a conversion may not change."""
    metadata = {name: value for name, value in tree["metadata"].items() if name not in _MAY_CHANGE}
    return {"apiVersion": tree["apiVersion"], "kind": tree["kind"], "metadata": metadata}


def _without_saved(tree: Tree) -> tuple[Tree, dict[str, list[Saved]]]:
    """The object without the annotation, and the content of the annotation. An unreadable annotation stays."""
    metadata: Any = tree.get("metadata")
    annotations: Any = cast("Tree", metadata).get("annotations") if isinstance(metadata, dict) else None
    text: Any = cast("Tree", annotations).get(SAVED_FIELDS) if isinstance(annotations, dict) else None
    if not isinstance(text, str):
        return tree, {}
    try:
        kept = msgspec.json.decode(text, type=dict[str, list[Saved]])
    except (msgspec.MsgspecError, RecursionError):
        return tree, {}
    if not all(_is_saved(each) for saved in kept.values() for each in saved):
        return tree, {}
    others = {name: value for name, value in cast("Tree", annotations).items() if name != SAVED_FIELDS}
    rest = {name: value for name, value in cast("Tree", metadata).items() if name != "annotations" or others}
    if others:
        rest["annotations"] = others
    return tree | {"metadata": rest}, kept


def _is_saved(saved: Saved) -> bool:
    """Whether an entry has the form that this module writes; users can edit annotations."""
    path: Any = saved.get("path")
    items: Any = saved.get("items", [])
    try:
        path, items = msgspec.convert(path, list[str]), msgspec.convert(items, list[tuple[Any, Any]])
    except msgspec.ValidationError:
        return False
    return bool(path)


def _with_saved(tree: Tree, kept: dict[str, list[Saved]]) -> Tree:
    if not kept:
        return tree
    metadata = dict(cast("Tree", tree["metadata"]))
    metadata["annotations"] = (metadata.get("annotations") or {}) | {SAVED_FIELDS: msgspec.json.encode(kept).decode()}
    return tree | {"metadata": metadata}
