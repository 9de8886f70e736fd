"""Conversion of custom resources between their stored and served versions.

Guarantees
- A stored object is read as in kube-apiserver: first its own version's schema prunes it and fills in defaults, and only
  then is it converted.
- An object that was stored since its definition last changed, in the requested version, is answered unchanged.
- A conversion does not change the identity: of the metadata, only labels and annotations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import msgspec

from steersman import schemas
from steersman.apiserver.documents import copied
from steersman.apiserver.errors import RequestRejected, unnamed
from steersman.apiserver.registry.conversion import Conversion
from steersman.apiserver.registry.definition import Tree
from steersman.apiserver.storage import Record
from steersman.schemas import DefaultsTooLarge, admitted, pruned

if TYPE_CHECKING:
    from steersman.apiserver.custom_resources.webhook_conversion import ConversionWebhook

#: Converts an object to another version: ``fn(obj, "web.example.com/v2")``. The function owns its argument.
Converter: TypeAlias = Callable[[Tree, str], Tree]

#: The maximum size of filled-in defaults in bytes: twice what the store accepts.
DEFAULTS_MAX: Final = 3 * 1024 * 1024
_NEVER: Final = 2**63
_IDENTITY: Final = frozenset({"apiVersion", "kind", "metadata"})
_CONVERTED: Final = frozenset({"labels", "annotations"})


class Versions:
    """All versions of one kind, and the conversion between them."""

    def __init__(
        self,
        *,
        group: str,
        kind: str,
        storage: str,
        schemas: Mapping[str, Tree],
        since: int = 0,
        convert: Converter | None = None,
        webhook: ConversionWebhook | None = None,
    ) -> None:
        self._group = group
        self._kind = kind
        self._storage = storage
        self._schemas = schemas
        self._since = since
        self._convert = convert
        self._webhook = webhook

    def conversion(self, version: str) -> Conversion:
        """The conversion between the stored version and a served one."""
        begins = f'{{"kind":"{self._kind}","apiVersion":"{self._group}/{version}",'.encode()
        since = self._since
        stored = self._schemas[self._storage]
        if len(self._schemas) > 1 and b'"default":' in msgspec.json.encode(stored):
            # An object written in another version lacks the defaults of this one.
            since = _NEVER
        elif _has_default(stored, "status"):
            # A new object is stored without its status and the defaults there.
            since = _NEVER

        def is_same(record: Record) -> bool:
            return record.modified > since and record.value.startswith(begins)

        def from_stored(tree: Tree) -> None:
            self._complete(tree)
            self._change(tree, version)

        def to_stored(tree: Tree) -> None:
            self._change(tree, self._storage)

        return Conversion(
            to_stored=to_stored,
            from_stored=from_stored,
            is_same=is_same,
            schemas=self._schemas,
            change=self._change_parts if self._webhook is None else None,
            webhook=None
            if self._webhook is None
            else self._webhook.versions(version, self._storage, begins, self._complete, self._prune),
        )

    def _complete(self, tree: Tree) -> None:
        schema = self._schemas.get(_version_of(tree))
        if schema is not None:
            _replace(tree, _with_defaults(schema, tree))

    def _prune(self, tree: Tree, version: str) -> None:
        schema = self._schemas.get(version)
        if schema is not None:
            _replace(tree, pruned(schema, tree, root=True))

    def _change(self, tree: Tree, version: str) -> None:
        if _version_of(tree) == version:
            return
        self._change_and_keep(tree, version)
        self._prune(tree, version)

    def _change_and_keep(self, tree: Tree, version: str) -> None:
        wanted = f"{self._group}/{version}"
        if self._convert is None:
            tree["apiVersion"] = wanted
        else:
            _replace(tree, self._called(self._convert, tree, wanted))

    def _change_parts(self, tree: Tree, version: str) -> None:
        """Convert an object that may lack parts, as in an apply that gives up fields."""
        schema, convert = self._schemas.get(_version_of(tree)), self._convert
        has_parts = any(name not in _IDENTITY for name in tree)
        if convert is None or schema is None or (has_parts and not schemas.lacks_parts(tree, schema)):
            self._change_and_keep(tree, version)
            return
        wanted = f"{self._group}/{version}"
        made = schemas.convert_parts(tree, schema, lambda whole: self._called(convert, whole, wanted))
        _replace(tree, made | {"kind": self._kind, "apiVersion": wanted})

    def _called(self, convert: Converter, tree: Tree, wanted: str) -> Tree:
        metadata: Tree = tree.get("metadata") or {}
        source = tree["apiVersion"]
        try:
            # A result that is not JSON fails here, not where it is answered or stored.
            made: Any = copied(convert(tree | {"metadata": dict(metadata)}, wanted))
        except RequestRejected:
            raise
        except Exception as error:
            raise self._failed(source, str(error)) from error
        converted = cast("Tree", made) if isinstance(made, dict) else {}
        metadata_made: Any = converted.get("metadata")
        if not isinstance(metadata_made, dict):
            raise self._failed(source, "the converted object has no metadata")
        new_metadata = cast("Tree", metadata_made)
        kept = {name: value for name, value in metadata.items() if name not in _CONVERTED}
        changed = {name: new_metadata[name] for name in _CONVERTED if new_metadata.get(name)}
        for name, texts in changed.items():
            if not isinstance(texts, dict) or not all(isinstance(each, str) for each in cast("Tree", texts).values()):
                raise self._failed(source, f"metadata.{name} of the converted object is not a map of strings")
        return converted | {"kind": self._kind, "apiVersion": wanted, "metadata": kept | changed}

    def _failed(self, source: str, why: str) -> RequestRejected:
        return unnamed(f"conversion webhook for {source}, Kind={self._kind} failed: {why}")


def uncalled(name: str, kind: str) -> Converter:
    """A converter that fails, for code that cannot wait for the webhook of a definition. The error says what to do."""

    def convert(tree: Tree, to: str) -> Tree:
        raise unnamed(
            f"conversion webhook for {tree['apiVersion']}, Kind={kind} failed: this server cannot call it here to "
            f"convert to {to}; pass a function instead: ApiServer(conversions={{{name!r}: function}})"
        )

    return convert


def _with_defaults(schema: Tree, tree: Tree) -> Tree:
    """A stored object with the defaults of its schema; without them, if they were added later and are too large."""
    try:
        return admitted(schema, tree, root=True, defaults_max=DEFAULTS_MAX)
    except DefaultsTooLarge:
        return pruned(schema, tree, root=True)


def _has_default(schema: Tree, name: str) -> bool:
    properties: Mapping[str, Tree] = schema.get("properties") or {}
    return "default" in properties.get(name, {})


def _version_of(tree: Tree) -> str:
    return tree["apiVersion"].rpartition("/")[2]


def _replace(tree: Tree, made: Tree) -> None:
    if made is not tree:
        tree.clear()
        tree.update(made)
