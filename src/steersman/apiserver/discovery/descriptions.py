"""Descriptions of the built-in definitions, from the source of the classes that were generated with them.

Guarantees
- A module's source is read once, when a definition of it is first described; without a source there is no description
  and no error.
- Lines that were wrapped to fit the source are one paragraph again.
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

#: What the modules leave to the classes that they derive from.
COMMON_FIELDS: Final = {
    "apiVersion": "The group and version in which the object is written, such as apps/v1; v1 alone is the core group.",
    "kind": "The kind of the object, in CamelCase, such as Deployment. It cannot be changed.",
    "metadata": "The object's name, labels, annotations and what else all objects have in common.",
}
_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1"
#: Definitions whose classes are written by hand and say less.
_BY_HAND: Final = {
    f"{_META}.ObjectMeta": {
        "annotations": "Texts that tools and people keep with the object; they cannot be selected by.",
        "creationTimestamp": "When the object was created. Set by the server.",
        "deletionGracePeriodSeconds": "How long the object may still take to end, once its deletion was asked for.",
        "deletionTimestamp": "When the object is to be gone. Set by the server once its deletion was asked for.",
        "finalizers": "Who has something to do before the object goes. It goes when this list is empty.",
        "generateName": "What the server makes a unique name of, if there is no name.",
        "generation": "Counts the changes of what is asked for. Set by the server.",
        "labels": "Keys and values by which objects are told apart and selected.",
        "managedFields": "Who set which fields, and when. Kept by the server.",
        "name": "The name, unique among the objects of a resource in a namespace. It cannot be changed.",
        "namespace": "The namespace that the object is in; empty for objects of the whole cluster. It cannot be changed.",
        "ownerReferences": "Objects that this one depends on. When all of them are gone, it is deleted.",
        "resourceVersion": "The revision of the object, opaque to clients: whoever sends it back changes only what it read.",
        "selfLink": "No longer set.",
        "uid": "Tells the object from others of the same name, before and after it. Set by the server.",
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
        "remainingItemCount": "How many objects follow on later pages, as far as that is known.",
        "resourceVersion": "The revision at which the list was made.",
        "selfLink": "No longer set.",
        "shardInfo": "Which part of a list this is, if only a part was asked for.",
    },
    f"{_META}.ManagedFieldsEntry": {
        "apiVersion": "The version in which the fields are written.",
        "fieldsType": "How the fields are written; always FieldsV1.",
        "fieldsV1": "The fields, as a tree.",
        "manager": "Who set the fields.",
        "operation": "How they were set: Apply or Update.",
        "subresource": "Through which subresource they were set, if through one.",
        "time": "When they were last changed.",
    },
}
_LIST_STARTS: Final = ("- ", "* ", "1. ")


class Description(NamedTuple):
    """What is said of a definition, and of its fields by their names in JSON."""

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
    """Paragraphs on one line each; a list keeps its lines."""
    lines: list[str] = []
    for line in text.split("\n"):
        words = line.strip()
        if lines and words and lines[-1] and not words.startswith(_LIST_STARTS):
            lines[-1] += f" {words}"
        else:
            lines.append(words)
    return "\n".join(lines)
