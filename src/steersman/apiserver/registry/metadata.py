"""The metadata that all objects share: the fields that the server sets, clears and rejects.

Guarantees
- The types of metadata are checked when a body is read (`check_shape`), so the rules below can rely on them.
- Problems have kube-apiserver's messages and order; maps are checked in the order of their keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from steersman.aio import new_uid, utc_now
from steersman.apiserver.registry.definition import Definition, Tree
from steersman.apiserver.registry.strategy import CHANGED, WHOLE
from steersman.objects import format_time
from steersman.objects.field_problems import (
    IMMUTABLE,
    NEGATIVE,
    PROBLEMS_MAX,
    FieldProblem,
    Printed,
    enough,
    forbidden,
    invalid,
    problem,
    required,
    until_enough,
)
from steersman.schemas.names import dns_label, label_value, path_segment, qualified_name
from steersman.wire import WireManager, WireMetadata

ANNOTATIONS_MAX = 256 * 1024
ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"
_STANDARD_FINALIZERS = frozenset({"kubernetes", ORPHAN, FOREGROUND})
#: Fields that a creator cannot set.
_SYSTEM = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")
_KNOWN = [field.encode_name for field in msgspec.structs.fields(WireMetadata)]
_MANAGED = [field.encode_name for field in msgspec.structs.fields(WireManager)]
_FORMAT = "RFC 1123"
_LIMIT_REASONS = frozenset({"FieldValueNotSupported", "FieldValueTooMany"})
_LIMITS = (NEGATIVE, "must be greater than or equal to 1")
_MANAGER_MAX, _SUBRESOURCE_MAX = 128, 256
#: How many characters of owner references are printed in full.
_OWNERS_SHOWN = 64 * 1024


class _Metadata(WireMetadata[str], rename="camel"):
    """Metadata whose times are validated later."""


def check_shape(metadata: Any) -> str | None:
    """The problem with the types of metadata; None if there is none."""
    try:
        msgspec.convert(metadata, _Metadata)
    except (msgspec.ValidationError, RecursionError) as error:
        return str(error)
    return None


def tidy(metadata: Tree) -> Tree:
    """Metadata without nulls, empty maps and lists, and unknown fields."""
    tidied: Tree = {name: value for name in _KNOWN if (value := metadata.get(name)) not in (None, "", {}, [])}
    managed: list[Tree] | None = metadata.get("managedFields")
    if managed is not None:
        # An empty list has a meaning: it clears all managers. So does a list with an empty entry, which no rule
        # shortens.
        tidied["managedFields"] = [
            {name: value for name in _MANAGED if (value := entry.get(name)) not in (None, "")} for entry in managed
        ] or [{}]
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
    """Clear the fields that a creator cannot set."""
    for name in _SYSTEM:
        metadata.pop(name, None)


def fill_system_fields(metadata: Tree) -> None:
    """Give a new object its identity."""
    metadata["uid"] = new_uid()
    metadata["creationTimestamp"] = format_time(utc_now())


def dedupe_owners(metadata: Tree) -> list[str]:
    """Drop duplicate owner references. Returns their UIDs."""
    owners: list[Any] = metadata.get("ownerReferences", [])
    if len(owners) < 2:
        return []
    kept: dict[bytes, Any] = {}
    duplicates: list[str] = []
    for owner in owners:
        text = msgspec.json.encode(owner, order="sorted")
        if text in kept:
            duplicates.append(owner["uid"])
        else:
            kept[text] = owner
    metadata["ownerReferences"] = list(kept.values())
    return duplicates


# validation


def validate_new(definition: Definition, metadata: Tree, own: list[FieldProblem]) -> list[FieldProblem]:
    """The problems of a new object's metadata, and of the rest: ``own``."""
    return _declared_last(definition, _validate_new(definition, metadata, own))


def _validate_new(definition: Definition, metadata: Tree, own: list[FieldProblem]) -> list[FieldProblem]:
    strategy = definition.strategy
    problems: list[FieldProblem] = _names(metadata, strategy.validate_name)
    problems += _common(definition, metadata)
    if _knows_finalizers(definition):
        problems += _standard_finalizers(metadata)
    if not strategy.judges_metadata:
        # Then they are validated when everything else is valid.
        return own or problems
    if WHOLE not in own:
        return problems + own
    at = own.index(WHOLE)
    return [*own[:at], *problems, *own[at + 1 :]]


def validate_changed(definition: Definition, metadata: Tree, old: Tree, own: list[FieldProblem]) -> list[FieldProblem]:
    """The problems of changed metadata, and of the rest: ``own``.

    As in the engine, several rules validate metadata, so some messages repeat.
    """
    return _declared_last(definition, _validate_changed(definition, metadata, old, own))


def _validate_changed(definition: Definition, metadata: Tree, old: Tree, own: list[FieldProblem]) -> list[FieldProblem]:
    strategy = definition.strategy
    problems = _names(metadata, path_segment) + _common(definition, metadata)
    changes = _update(metadata, old)
    odd = _standard_finalizers(metadata) if _knows_finalizers(definition) else []
    if not (problems or changes or odd):
        return [one for one in own if one is not CHANGED and one is not WHOLE]
    again = changes + _labels_and_annotations(metadata) + _owners(metadata.get("ownerReferences", ()))
    again += _managers(metadata)
    problems += again
    for one in own:
        if one is CHANGED:
            problems += again + odd
        elif one is WHOLE:
            problems += _names(metadata, strategy.validate_name) + _common(definition, metadata) + odd
        else:
            problems.append(one)
    return problems


def _declared_last(definition: Definition, problems: list[FieldProblem]) -> list[FieldProblem]:
    """Each problem of a built-in kind once; those that declared rules find, after all others."""
    if not problems or definition.custom:
        return problems
    problems = list(dict.fromkeys(problems))
    pattern = definition.strategy.declared_fields
    if pattern is None:
        return problems
    fixed = {one.path for one in problems if one.message.endswith(IMMUTABLE)}
    declared = {one: _as_declared(one, changed=one.path in fixed) for one in problems if pattern.fullmatch(one.path)}
    if not definition.strategy.declares_forms:
        declared = {one: found for one, found in declared.items() if _FORMAT not in one.message}
    late = dict.fromkeys(found for found in declared.values() if found is not None)
    return [one for one in problems if declared.get(one) is None] + list(late)


def _as_declared(one: FieldProblem, *, changed: bool) -> FieldProblem | None:
    """A problem as a declared rule reports it; None if none does, as about the form of a field that must not change."""
    if one.reason == "FieldValueRequired":
        return required(one.path)
    if one.reason == "FieldValueForbidden":
        return forbidden(one.path)
    if one.message.endswith(IMMUTABLE):
        return invalid(one.path, None, IMMUTABLE)
    if changed:
        return None
    is_limit = one.reason in _LIMIT_REASONS or one.message.endswith(_LIMITS)
    return one if is_limit or _FORMAT in one.message else None


def _knows_finalizers(definition: Definition) -> bool:
    return definition.strategy.knows_finalizers and not definition.custom


def _names(metadata: Tree, judge: Callable[..., list[str]]) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    generate, name = metadata.get("generateName", ""), metadata.get("name", "")
    if generate:
        problems += _invalid("metadata.generateName", generate, judge(generate, prefix=True))
    if not name:
        return [*problems, problem("metadata.name", "FieldValueRequired", "", "name or generateName is required")]
    return problems + _invalid("metadata.name", name, judge(name))


def _common(definition: Definition, metadata: Tree) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    namespace = metadata.get("namespace", "")
    if definition.namespaced:
        if not namespace:
            problems.append(problem("metadata.namespace", "FieldValueRequired"))
        else:
            problems += _invalid("metadata.namespace", namespace, dns_label(namespace))
    elif namespace:
        problems.append(problem("metadata.namespace", "FieldValueForbidden", "", "not allowed on this type"))
    if metadata.get("generation", 0) < 0:
        problems.append(
            problem(
                "metadata.generation", "FieldValueInvalid", metadata["generation"], "must be greater than or equal to 0"
            )
        )
    problems += _labels_and_annotations(metadata)
    if "ownerReferences" in metadata:
        problems += _owners(metadata["ownerReferences"])
    if "finalizers" in metadata:
        problems += _finalizers(metadata["finalizers"])
    return problems + _managers(metadata)


def _labels_and_annotations(metadata: Tree) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    labels: dict[str, str] = metadata.get("labels", {})
    for key, value in sorted(labels.items()):
        if len(problems) >= PROBLEMS_MAX:
            return problems
        problems += _invalid("metadata.labels", key, qualified_name(key))
        problems += _invalid("metadata.labels", value, label_value(value))
    annotations: dict[str, str] = metadata.get("annotations", {})
    if not annotations:
        return problems
    for key in sorted(annotations):
        if len(problems) >= PROBLEMS_MAX:
            return problems
        problems += _invalid("metadata.annotations", key, qualified_name(key.lower()))
    size = sum(len(key) + len(value) for key, value in annotations.items())
    # Counting bytes is needed only for non-ASCII characters near the limit.
    if 4 * size > ANNOTATIONS_MAX and sum(len(f"{k}{v}".encode()) for k, v in annotations.items()) > ANNOTATIONS_MAX:
        words = f"may not be more than {ANNOTATIONS_MAX} bytes"
        problems.append(problem("metadata.annotations", "FieldValueTooLong", "", words))
    return problems


def _owners(owners: Iterable[Tree]) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    controller = printed_all = ""
    where = "metadata.ownerReferences"
    for index, owner in until_enough(owners, problems):
        path, version = f"{where}[{index}]", owner["apiVersion"]
        if version and (version.count("/") > 1 or not version.rpartition("/")[2]):
            problems.append(invalid(f"{path}.apiVersion", version, "must be <group>/<version> or <version>"))
        problems += [
            required(f"{path}.{name}", "must not be empty")
            for name in ("apiVersion", "kind", "name", "uid")
            if not owner[name]
        ]
        if version == "v1" and owner["kind"] == "Event":
            printed = msgspec.json.encode(_ordered(owner)).decode()
            problems.append(invalid(path, Printed(printed), "/v1, Kind=Event is disallowed from being an owner"))
        if owner.get("controller"):
            this = f"{owner['kind']}/{owner['name']}"
            if controller:
                words = (
                    'Only one reference can have Controller set to true. Found "true" in references for '
                    f"{controller} and {this}"
                )
                if not printed_all:
                    printed_all = msgspec.json.encode([_ordered(reference) for reference in owners]).decode()
                    # Each of them repeats the list, so very long ones are truncated.
                    printed_all = printed_all if len(printed_all) <= _OWNERS_SHOWN else f"{printed_all[:1024]}..."
                problems.append(invalid(where, Printed(printed_all), words))
            controller = controller or this
    return problems


def _managers(metadata: Tree) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    for index, entry in until_enough(metadata.get("managedFields", ()), problems):
        where = f"metadata.managedFields[{index}]"
        problems += manager_problems(entry.get("manager", ""), f"{where}.manager")
        if len(entry.get("subresource", "").encode()) > _SUBRESOURCE_MAX:
            words = f"may not be more than {_SUBRESOURCE_MAX} bytes"
            problems.append(problem(f"{where}.subresource", "FieldValueTooLong", "", words))
    return problems


def manager_problems(manager: str, path: str) -> list[FieldProblem]:
    """The problems of a field manager's name."""
    if manager.isascii() and manager.isprintable() and len(manager) <= _MANAGER_MAX:
        return []
    problems: list[FieldProblem] = []
    if len(manager.encode()) > _MANAGER_MAX:
        problems.append(problem(path, "FieldValueTooLong", "", f"may not be more than {_MANAGER_MAX} bytes"))
    position = 0
    for character in manager:
        if len(problems) >= PROBLEMS_MAX:
            break
        if not character.isprintable():
            words = f"invalid character U+{ord(character):04X} (at position {position})"
            problems.append(problem(path, "FieldValueInvalid", manager, words))
        position += len(character.encode())
    return problems


def _ordered(owner: Tree) -> Tree:
    names = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")
    return {name: owner[name] for name in names if name in owner}


def _finalizers(finalizers: list[str]) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    for finalizer in finalizers:
        if len(problems) >= PROBLEMS_MAX:
            break
        problems += _invalid("metadata.finalizers", finalizer, qualified_name(finalizer))
    if ORPHAN in finalizers and FOREGROUND in finalizers:
        words = f"finalizer {ORPHAN} and {FOREGROUND} cannot be both set"
        problems.append(problem("metadata.finalizers", "FieldValueInvalid", finalizers, words))
    return problems


def finalizer_warnings(metadata: Tree, old: Tree) -> list[str]:
    """Warnings about new finalizers without a domain."""
    before = frozenset(old.get("finalizers", ()))
    return [
        f'metadata.finalizers: "{finalizer}": prefer a domain-qualified finalizer name to avoid accidental conflicts with '
        "other finalizer writers"
        for finalizer in metadata.get("finalizers", ())
        if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS and finalizer not in before
    ]


def _standard_finalizers(metadata: Tree) -> list[FieldProblem]:
    """The additional rule of built-in kinds: a finalizer has a domain, or is one of Kubernetes' own."""
    return enough(
        problem(
            f"metadata.finalizers[{index}]",
            "FieldValueInvalid",
            finalizer,
            "name is neither a standard finalizer name nor is it fully qualified",
        )
        for index, finalizer in enumerate(metadata.get("finalizers", ()))
        if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS
    )


def _update(metadata: Tree, old: Tree) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    if "deletionTimestamp" in old:
        extra = sorted(set(metadata.get("finalizers", ())) - set(old.get("finalizers", ())))
        if extra:
            listed = ", ".join(f'"{name}"' for name in extra)
            words = (
                "no new finalizers can be added if the object is being deleted, found new finalizers "
                f"[]string{{{listed}}}"
            )
            problems.append(problem("metadata.finalizers", "FieldValueForbidden", "", words))
    problems += [
        problem(f"metadata.{name}", "FieldValueInvalid", _shown(name, metadata.get(name)), "field is immutable")
        for name in ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")
        if metadata.get(name) != old.get(name)
    ]
    return problems


def _shown(name: str, value: Any) -> Any:
    return "" if value is None and name in {"name", "namespace", "uid"} else value


def _invalid(path: str, value: str, words: list[str]) -> list[FieldProblem]:
    return [problem(path, "FieldValueInvalid", value, reason) for reason in words] if words else []
