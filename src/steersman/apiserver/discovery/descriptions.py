"""Descriptions of the built-in definitions, from the source of their generated classes.

Guarantees
- A module's source is read once, when one of its definitions is first described; without source there is no
  description, and no error.
- Wrapped source lines are joined into paragraphs again.
"""

from __future__ import annotations

import ast
import inspect
import sys
from functools import cache
from itertools import pairwise
from typing import Final, NamedTuple

import msgspec

from steersman import kinds

#: Fields that the modules inherit.
COMMON_FIELDS: Final = {
    "apiVersion": "The group and version of the object, such as apps/v1; v1 alone is the core group.",
    "kind": "The kind of the object, in CamelCase, such as Deployment. It cannot be changed.",
    "metadata": "The object's name, labels, annotations and other common fields.",
}
_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1"
#: Definitions whose classes are written by hand with shorter descriptions.
_BY_HAND: Final = {
    f"{_META}.ObjectMeta": {
        "annotations": "Texts that tools and people attach to the object; selectors cannot use them.",
        "creationTimestamp": "When the object was created. Set by the server.",
        "deletionGracePeriodSeconds": "How long the object may still take to terminate, once its deletion was requested.",
        "deletionTimestamp": "When the object will be gone. Set by the server once its deletion was requested.",
        "finalizers": "Who must act before the object is removed. The object is removed when this list is empty.",
        "generateName": "The prefix from which the server makes a unique name, if there is no name.",
        "generation": "Counts the changes of the desired state. Set by the server.",
        "labels": "Keys and values that identify and select objects.",
        "managedFields": "Who set which fields, and when. Maintained by the server.",
        "name": "The name, unique among the objects of a resource in a namespace. It cannot be changed.",
        "namespace": "The namespace of the object; empty for cluster-scoped objects. It cannot be changed.",
        "ownerReferences": "Objects that this one depends on. When all of them are gone, it is deleted.",
        "resourceVersion": "The revision of the object, opaque to clients. A write that includes it fails if the object has changed since.",
        "selfLink": "No longer set.",
        "uid": "Distinguishes the object from earlier and later ones of the same name. Set by the server.",
    },
    f"{_META}.OwnerReference": {
        "apiVersion": "The group and version of the owner.",
        "blockOwnerDeletion": "Whether the owner stays until this object is gone, if it is deleted in the foreground.",
        "controller": "Whether the owner is the one that manages this object.",
        "kind": "The kind of the owner.",
        "name": "The name of the owner.",
        "uid": "The uid of the owner.",
    },
    f"{_META}.ListMeta": {
        "continue": "Where the next page begins; empty if this is the last one.",
        "remainingItemCount": "How many objects follow on later pages, if known.",
        "resourceVersion": "The revision of the list.",
        "selfLink": "No longer set.",
        "shardInfo": "Which part of a list this is, if only a part was requested.",
    },
    f"{_META}.ManagedFieldsEntry": {
        "apiVersion": "The version in which the fields are written.",
        "fieldsType": "How the fields are written; always FieldsV1.",
        "fieldsV1": "The fields, as a tree.",
        "manager": "Who set the fields.",
        "operation": "How they were set: Apply or Update.",
        "subresource": "The subresource through which they were set, if any.",
        "time": "When they were last changed.",
    },
}
_LIST_STARTS: Final = ("- ", "* ", "1. ")


class Description(NamedTuple):
    """The description of a definition, and of its fields by JSON name."""

    text: str
    fields: dict[str, str]


def describe(name: str) -> Description:
    """The description of a definition such as ``io.k8s.api.core.v1.Container``; empty if there is none."""
    by_hand = _BY_HAND.get(name, {})
    cls = kinds.class_of_definition(name)
    if cls is None:
        return Description("", by_hand)
    text, fields = _module(cls.__module__).get(cls.__name__, ("", {}))
    spelled = {field.name: field.encode_name for field in msgspec.structs.fields(cls)}
    return Description(text, by_hand | {spelled[field]: said for field, said in fields.items() if field in spelled})


@cache
def _module(name: str) -> dict[str, tuple[str, dict[str, str]]]:
    """The docstrings of all classes of a module, and the strings below their fields."""
    try:
        tree = ast.parse(inspect.getsource(sys.modules[name]))
    except (OSError, TypeError, SyntaxError):
        return {}  # shipped without source
    found: dict[str, tuple[str, dict[str, str]]] = {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            found[node.name] = (_unwrapped(ast.get_docstring(node) or ""), _fields(node))
    return found


def _fields(node: ast.ClassDef) -> dict[str, str]:
    found: dict[str, str] = {}
    for field, below in pairwise(node.body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(below, ast.Expr):
            value = below.value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                found[field.target.id] = _unwrapped(inspect.cleandoc(value.value))
    return found


def _unwrapped(text: str) -> str:
    """The text with one line per paragraph; a list keeps its lines."""
    lines: list[str] = []
    for line in text.split("\n"):
        words = line.strip()
        if lines and words and lines[-1] and not words.startswith(_LIST_STARTS):
            lines[-1] += f" {words}"
        else:
            lines.append(words)
    return "\n".join(lines)
