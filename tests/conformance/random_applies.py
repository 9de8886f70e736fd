"""Applies by chance: of whole objects, of parts of them and of statuses, by two managers who may take from each other."""

from __future__ import annotations

from random import Random  # noqa: TID251 - seeded, and the run prints the seed
from typing import Any

from conformance.bodies import Tree, merged
from conformance.chances import Usual, maybe, pick
from conformance.random_kinds import RandomKind
from conformance.scenario import Call, patch

MANAGERS = ("ada", "ben", "kubectl")


def random_apply(chance: Random, kind: RandomKind, one: str, whole: Tree, **options: Any) -> Call:
    """An apply to the object at a path, of which ``whole`` is a body."""
    name = one.rsplit("/", 1)[1]
    bare = {key: kind.make(Usual(), name)[key] for key in ("apiVersion", "kind")} | {"metadata": {"name": name}}
    choice = chance.random()
    if choice < 0.15 and kind.status is not None:
        one, intent = f"{one}/status", {**bare, "status": kind.status(chance)}
    elif choice < 0.6:
        intent = whole
    elif choice < 0.7:
        intent = bare
    else:
        intent = merged(bare, kind.change(chance))
        intent = merged(intent, maybe(chance, 0.3, {"metadata": {"labels": {"more": chance.choice("12")}}}))
        if intent["kind"] == "Secret" and None in (intent.get("data") or {}).values():
            intent["data"] = {}  # a known difference: found_at_random/applied-secret-with-null
    options.setdefault("fieldManager", chance.choice(MANAGERS))
    if chance.random() < 0.5:
        options["force"] = pick(chance, ["true"], ["false"])
    return patch(one, intent, "apply", **options)
