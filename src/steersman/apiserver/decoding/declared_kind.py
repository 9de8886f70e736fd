"""The kind that a body declares."""

from __future__ import annotations

from typing import Any, cast

from steersman.apiserver.decoding.json_text import Unrecognized
from steersman.apiserver.go_types.reader import tree_words
from steersman.apiserver.go_types.text import Text
from steersman.apiserver.registry.definition import Tree
from steersman.golang import cannot_unmarshal, json_type
from steersman.objects import GroupVersionKind

#: The Go type into which every body is decoded first.
TYPE_META = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
#: The types of values that are no string: as JSON, and as Go decodes them without a type.
_TYPES: dict[type[Any], tuple[str, str]] = {
    list: ("array", "slice"),
    dict: ("object", "map"),
    bool: ("bool", "bool"),
    float: ("number", "float64"),
}


def declared_kind(text: Text) -> GroupVersionKind:
    """The declared kind of a body, whose field names ignore case; empty where it declares none. Null is an empty object.

    Raises `Unrecognized` if the body is no object, or declares its kind by values that are no strings.
    """
    if text.tree is None:
        text.tree = {}
    tree: Any = text.tree
    if not isinstance(tree, dict):
        raise _unparsed(cannot_unmarshal(json_type(tree), TYPE_META))
    found = {"apiversion": "", "kind": ""}
    for name, value in cast("Tree", tree).items():
        folded = name.lower()
        if folded not in found or value is None:
            continue
        if not isinstance(value, str):
            json, go = _TYPES.get(cast("Any", type(value)), ("number", "int64"))
            field = "kind" if folded == "kind" else "apiVersion"
            raise _unparsed(cannot_unmarshal(json, "string", f".{field}"), tree_words(go, "string", "string"))
        found[folded] = value
    version = found["apiversion"]
    if version.count("/") > 1:
        raise Unrecognized(f"unexpected GroupVersion string: {version}")
    group, _, version = version.rpartition("/")
    return GroupVersionKind(group, version, found["kind"])


def _unparsed(why: str, of_tree: str = "") -> Unrecognized:
    why = f"couldn't get version/kind; json parse error: {why}"
    return Unrecognized(why, of_tree)
