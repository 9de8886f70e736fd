"""The metadata that all objects share: what the server sets, what it clears, and what it refuses.

Guarantees
- The types of metadata are checked when a body is read (`check_shape`), so the rules below never meet a surprise.
- What is wrong is said in kube-apiserver's words and order; maps are looked at in the order of their keys.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from steersman.aio import new_uid, now
from steersman.apiserver.registry.definition import Definition, Tree
from steersman.apiserver.registry.names import dns_label, dns_subdomain, path_segment
from steersman.objects import format_time
from steersman.schemas import FieldProblem
from steersman.schemas.field_problems import problem

ANNOTATIONS_MAX = 256 * 1024
ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"
_STANDARD_FINALIZERS = frozenset({"kubernetes", ORPHAN, FOREGROUND})
_KEY = re.compile("([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_VALUE = re.compile("(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_KEY_WORDS = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_VALUE_WORDS = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
#: What a creator cannot set.
_SYSTEM = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")
_KNOWN = [
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
]


class _Owner(msgspec.Struct, rename="camel"):
    api_version: str | None = None
    kind: str | None = None
    name: str | None = None
    uid: str | None = None
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class _Shape(msgspec.Struct, rename="camel"):
    name: str | None = None
    generate_name: str | None = None
    namespace: str | None = None
    self_link: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    generation: int | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str | None] | None = None
    annotations: dict[str, str | None] | None = None
    owner_references: list[_Owner] | None = None
    finalizers: list[str | None] | None = None
    managed_fields: list[dict[str, Any]] | None = None


def check_shape(metadata: Any) -> str | None:
    """What is wrong with the types of metadata; None if nothing is."""
    try:
        msgspec.convert(metadata, _Shape)
    except (msgspec.ValidationError, RecursionError) as error:
        return str(error)
    return None


def tidy(metadata: Tree) -> Tree:
    """Metadata without what says nothing: nulls, empty maps and lists, fields that nobody knows."""
    tidied: Tree = {name: value for name in _KNOWN if (value := metadata.get(name)) not in (None, "", {}, [])}
    # Until managers of fields are tracked, nobody's claim about them is kept.
    tidied.pop("managedFields", None)
    tidied.pop("selfLink", None)
    for name in ("labels", "annotations"):
        if name in tidied and None in tidied[name].values():
            tidied[name] = {key: value or "" for key, value in tidied[name].items()}
    for owner in tidied.get("ownerReferences", ()):
        for name in ("apiVersion", "kind", "name", "uid"):
            owner[name] = owner.get(name) or ""
        for name in ("controller", "blockOwnerDeletion"):
            if owner.get(name, "") is None:
                del owner[name]
    if not tidied.get("generation", 1):
        del tidied["generation"]
    return tidied


def wipe_system_fields(metadata: Tree) -> None:
    """Clear what a creator cannot set."""
    for name in _SYSTEM:
        metadata.pop(name, None)


def fill_system_fields(metadata: Tree) -> None:
    """Give a new object its identity."""
    metadata["uid"] = new_uid()
    metadata["creationTimestamp"] = format_time(now())


def dedupe_owners(metadata: Tree) -> list[str]:
    """Drop owner references that are there twice; their UIDs."""
    owners: list[Any] = metadata.get("ownerReferences", [])
    if len(owners) < 2:
        return []
    kept: list[Any] = []
    duplicates: list[str] = []
    for owner in owners:
        if owner in kept:
            duplicates.append(owner["uid"])
        else:
            kept.append(owner)
    metadata["ownerReferences"] = kept
    return duplicates


# what is refused


def validate_new(definition: Definition, metadata: Tree) -> list[FieldProblem]:
    """What is wrong with the metadata of a new object."""
    names: Callable[..., list[str]] = definition.strategy.validate_name
    found: list[FieldProblem] = _names(metadata, names)
    found += _common(definition, metadata)
    if not definition.custom:
        found += _standard_finalizers(metadata)
    return found


def validate_changed(definition: Definition, metadata: Tree, old: Tree) -> list[FieldProblem]:
    """What is wrong with changed metadata. As in the engine, where several rules look at them, some is said twice."""
    found = _names(metadata, path_segment)
    found += _common(definition, metadata)
    changes = _update(metadata, old)
    if found or changes:
        again = _labels_and_annotations(metadata) + _owners(metadata.get("ownerReferences", ()))
        found += [*changes, *again, *changes, *again]
        if definition.strategy.validates_whole_updates:
            found += (
                _names(metadata, definition.strategy.validate_name)
                + again
                + _finalizers(metadata.get("finalizers", []))
            )
    if not definition.custom:
        found += _standard_finalizers(metadata)
    return found


def _names(metadata: Tree, judge: Callable[..., list[str]]) -> list[FieldProblem]:
    found: list[FieldProblem] = []
    generate, name = metadata.get("generateName", ""), metadata.get("name", "")
    if generate:
        found += _invalid("metadata.generateName", generate, judge(generate, prefix=True))
    if not name:
        return [*found, problem("metadata.name", "FieldValueRequired", "", "name or generateName is required")]
    return found + _invalid("metadata.name", name, judge(name))


def _common(definition: Definition, metadata: Tree) -> list[FieldProblem]:
    found: list[FieldProblem] = []
    namespace = metadata.get("namespace", "")
    if definition.namespaced:
        if not namespace:
            found.append(problem("metadata.namespace", "FieldValueRequired"))
        else:
            found += _invalid("metadata.namespace", namespace, dns_label(namespace))
    elif namespace:
        found.append(problem("metadata.namespace", "FieldValueForbidden", "", "not allowed on this type"))
    if metadata.get("generation", 0) < 0:
        found.append(
            problem(
                "metadata.generation", "FieldValueInvalid", metadata["generation"], "must be greater than or equal to 0"
            )
        )
    found += _labels_and_annotations(metadata)
    if "ownerReferences" in metadata:
        found += _owners(metadata["ownerReferences"])
    if "finalizers" in metadata:
        found += _finalizers(metadata["finalizers"])
    return found


def _labels_and_annotations(metadata: Tree) -> list[FieldProblem]:
    found: list[FieldProblem] = []
    labels: dict[str, str] = metadata.get("labels", {})
    for key, value in sorted(labels.items()):
        found += _invalid("metadata.labels", key, qualified_name(key))
        found += _invalid("metadata.labels", value, label_value(value))
    annotations: dict[str, str] = metadata.get("annotations", {})
    if not annotations:
        return found
    for key in sorted(annotations):
        found += _invalid("metadata.annotations", key, qualified_name(key.lower()))
    size = sum(len(key) + len(value) for key, value in annotations.items())
    # Characters are bytes unless there are others than ASCII's, which few need to be counted for.
    if 4 * size > ANNOTATIONS_MAX and sum(len(f"{k}{v}".encode()) for k, v in annotations.items()) > ANNOTATIONS_MAX:
        words = f"may not be more than {ANNOTATIONS_MAX} bytes"
        found.append(problem("metadata.annotations", "FieldValueTooLong", "", words))
    return found


def _owners(owners: Iterable[Tree]) -> list[FieldProblem]:
    found: list[FieldProblem] = []
    controller = ""
    for owner in owners:
        where = "metadata.ownerReferences"
        if owner["apiVersion"].count("/") > 1 or not owner["apiVersion"].rpartition("/")[2]:
            found.append(
                problem(f"{where}.apiVersion", "FieldValueInvalid", owner["apiVersion"], "version must not be empty")
            )
        found += [
            problem(f"{where}.{name}", "FieldValueInvalid", "", "must not be empty")
            for name in ("kind", "name", "uid")
            if not owner[name]
        ]
        if owner["apiVersion"] == "v1" and owner["kind"] == "Event":
            printed = msgspec.json.encode(_ordered(owner)).decode()
            found.append(
                FieldProblem(where, f"Invalid value: {printed}: /v1, Kind=Event is disallowed from being an owner")
            )
        if owner.get("controller"):
            this = f"{owner['kind']}/{owner['name']}"
            if controller:
                words = (
                    'Only one reference can have Controller set to true. Found "true" in references for '
                    f"{controller} and {this}"
                )
                printed = msgspec.json.encode([_ordered(each) for each in owners]).decode()
                found.append(FieldProblem(where, f"Invalid value: {printed}: {words}"))
            controller = controller or this
    return found


def _ordered(owner: Tree) -> Tree:
    names = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")
    return {name: owner[name] for name in names if name in owner}


def _finalizers(finalizers: list[str]) -> list[FieldProblem]:
    found: list[FieldProblem] = []
    for finalizer in finalizers:
        found += _invalid("metadata.finalizers", finalizer, qualified_name(finalizer))
    if ORPHAN in finalizers and FOREGROUND in finalizers:
        words = f"finalizer {ORPHAN} and {FOREGROUND} cannot be both set"
        found.append(problem("metadata.finalizers", "FieldValueInvalid", finalizers, words))
    return found


def _standard_finalizers(metadata: Tree) -> list[FieldProblem]:
    """What built-in kinds demand beyond: a finalizer has a domain, or is one of Kubernetes' own."""
    return [
        problem(
            f"metadata.finalizers[{index}]",
            "FieldValueInvalid",
            finalizer,
            "name is neither a standard finalizer name nor is it fully qualified",
        )
        for index, finalizer in enumerate(metadata.get("finalizers", ()))
        if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS
    ]


def _update(metadata: Tree, old: Tree) -> list[FieldProblem]:
    found: list[FieldProblem] = []
    if "deletionTimestamp" in old:
        extra = sorted(set(metadata.get("finalizers", ())) - set(old.get("finalizers", ())))
        if extra:
            listed = ", ".join(f'"{name}"' for name in extra)
            words = (
                "no new finalizers can be added if the object is being deleted, found new finalizers "
                f"[]string{{{listed}}}"
            )
            found.append(problem("metadata.finalizers", "FieldValueForbidden", "", words))
    found += [
        problem(f"metadata.{name}", "FieldValueInvalid", _shown(name, metadata.get(name)), "field is immutable")
        for name in ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")
        if metadata.get(name) != old.get(name)
    ]
    return found


def _shown(name: str, value: Any) -> Any:
    return "" if value is None and name in {"name", "namespace", "uid"} else value


def qualified_name(text: str) -> list[str]:
    """What is wrong with a key of a label, or what is named like one."""
    if _KEY.fullmatch(text) and len(text) <= 63:
        return []
    prefix, slash, name = text.partition("/")
    found: list[str] = []
    if not slash:
        name = text
    elif "/" in name:
        return [
            f"a valid label key {_KEY_WORDS} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    elif not prefix:
        found.append("prefix part must be non-empty")
    else:
        # Here it is bytes that are counted.
        found += [f"prefix part {words.replace('253 characters', '253 bytes')}" for words in dns_subdomain(prefix)]
    if not name:
        found.append("name part must be non-empty")
    elif len(name.encode()) > 63:
        found.append("name part must be no more than 63 bytes")
    if not _KEY.fullmatch(name):
        found.append(f"name part {_KEY_WORDS}")
    return found


def label_value(text: str) -> list[str]:
    """What is wrong with the value of a label."""
    found = ["must be no more than 63 bytes"] if len(text.encode()) > 63 else []
    if not _VALUE.fullmatch(text):
        found.append(_VALUE_WORDS)
    return found


def _invalid(path: str, value: str, words: list[str]) -> list[FieldProblem]:
    return [problem(path, "FieldValueInvalid", value, each) for each in words] if words else []
