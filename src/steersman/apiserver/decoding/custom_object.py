"""Bodies of custom resources: decoded without a type, and held against their schema.

Guarantees
- Metadata has the right types. All other fields are kept: pruning drops the unknown ones, and the schema's rules
  check the others.
- Findings have kube-apiserver's order: duplicates in the order of the text, then unknown fields.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from steersman.apiserver.decoding.custom_fields import Schema, read_fields
from steersman.apiserver.decoding.json_text import Unrecognized
from steersman.apiserver.decoding.rejections import Decoded, other_version, unhandled, warnings_of
from steersman.apiserver.go_types.reader import Unreadable
from steersman.apiserver.go_types.shapes import OF_ALL_GROUPS
from steersman.apiserver.go_types.text import Text, find_duplicates
from steersman.apiserver.registry.definition import Definition, Tree
from steersman.objects import GroupVersionKind


def custom_object(
    definition: Definition, text: Text, given: GroupVersionKind, directive: str, twice: Sequence[str] = ()
) -> Decoded:
    """The object of a text that declares this kind. ``twice`` are the duplicate fields of the patch that made it.

    Raises `Unrecognized` if it declares none.
    """
    expected = definition.gvk
    if not given.kind:
        shown = msgspec.json.encode(text.tree, order="sorted") if text.sent is None else text.sent
        why = f"Object 'Kind' is missing in '{shown.decode('utf-8', 'replace')}'"
        raise unhandled(expected, expected, why) if directive == "Ignore" else Unrecognized(why)
    schema = _schema(definition, given)
    if given in OF_ALL_GROUPS:
        # Its fields are known, but not here.
        raise other_version(text.tree.get("apiVersion"), expected)
    if text.too_large:
        raise unhandled(given, expected, text.too_large)
    findings = find_duplicates(text)
    tree: Tree = text.tree
    try:
        has_form = given == expected and definition.strategy.has_form(tree)
        findings += read_fields(schema, tree, has_form=has_form)
    except Unreadable as error:
        raise unhandled(given, expected, str(error)) from None
    warnings = warnings_of(text, [*twice, *findings], given, directive)
    # The kind's own rules check the version of a patch's result, and always its kind.
    if text.sent is not None and given.group_version != expected.group_version:
        raise other_version(tree.get("apiVersion"), expected)
    tree["kind"], tree["apiVersion"] = given.kind, given.api_version
    return Decoded(tree, warnings)


def _schema(definition: Definition, given: GroupVersionKind) -> Schema:
    """The schema of a version. Another version has none, so everything in it is unknown, except for another group."""
    if given.group != definition.gvk.group:
        return {"x-kubernetes-preserve-unknown-fields": True}
    return definition.schema() if given.version == definition.gvk.version else {}
