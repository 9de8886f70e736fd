"""Applies and updates by several managers, at random, on the engine and here: objects and managed fields are the same.

``APPLY_STEPS=20000`` makes it longer, ``APPLY_SEED=7`` another one.
"""

from __future__ import annotations

import copy
import json
import os
import ssl
from collections.abc import Mapping
from typing import Any

import aiohttp
from patches.test_patches_engine import SCHEMA, install

from samples.random_intents import Intents
from steersman.apiserver.registry.builtin import shapes
from steersman.kinds.definitions import definition, schema_of
from steersman.objects import GroupVersionKind
from steersman.patches import (
    STATUS_FIELDS,
    ApplyConflicts,
    FieldManager,
    FieldSet,
    MergeSchema,
    PatchError,
    UnknownVersion,
    format_path,
)
from steersman.testing import Engine

STEPS = int(os.environ.get("APPLY_STEPS", "400"))
SEED = int(os.environ.get("APPLY_SEED", "1"))
APPLIERS = ("ada", "ben", "cleo", "kubectl")
#: More than an object keeps entries of.
UPDATERS = tuple(f"updater-{number:02}" for number in range(14))
NOW = "2030-01-01T00:00:00Z"
#: What a Service gets after the server has recorded who owns what.
ADDRESSES = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")
#: What only the server sets.
SYSTEM = ("managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "namespace")


class OneVersion:
    """A kind with one version."""

    def __init__(self, api_version: str, schema: MergeSchema, ignored: FieldSet) -> None:
        self._api_version, self._schema, self._ignored = api_version, schema, ignored

    def _check(self, api_version: str) -> None:
        if api_version != self._api_version:
            raise UnknownVersion(api_version)

    def schema(self, api_version: str) -> MergeSchema:
        self._check(api_version)
        return self._schema

    def ignored(self, api_version: str) -> FieldSet:
        return self._ignored

    def convert(self, tree: Mapping[str, Any], api_version: str) -> Mapping[str, Any]:
        self._check(api_version)
        return tree


class Kind:
    """A kind of the engine, and its field manager here."""

    def __init__(self, kind: str, api_version: str, plural: str, schema: MergeSchema, *, definition: str = "") -> None:
        self.kind, self.api_version = kind, api_version
        self.root = f"/{'apis' if '/' in api_version else 'api'}/{api_version}"
        self.plural = plural
        ignored = FieldSet() if kind == "ConfigMap" else STATUS_FIELDS
        self.fields = FieldManager(OneVersion(api_version, schema, ignored), api_version=api_version)
        self.empty = (shapes.empty(definition) if definition else {}) | {"apiVersion": api_version, "kind": kind}

    @classmethod
    def built_in(cls, kind: str, api_version: str, plural: str, package: str) -> Kind:
        group, _, version = api_version.rpartition("/")
        schema = MergeSchema(
            schema_of(GroupVersionKind(group, version, kind)), resolve=lambda name: definition(name.rpartition("/")[2])
        )
        return cls(kind, api_version, plural, schema, definition=f"{package}.{kind}")


class Play:
    """Plays steps on the engine, and holds what it answers against what is computed here."""

    def __init__(self, session: aiohttp.ClientSession, namespace: str, intents: Intents) -> None:
        self.session, self.namespace, self.intents, self.random = session, namespace, intents, intents.random
        self.same = self.conflicts = 0

    async def send(self, method: str, url: str, body: Any = None, *, form: str = "json") -> tuple[int, Any]:
        headers = {"Content-Type": f"application/{form}"}
        data = None if body is None else json.dumps(body)
        async with self.session.request(method, url, data=data, headers=headers) as response:
            return response.status, json.loads(await response.read())

    async def step(self, kind: Kind, name: str) -> None:
        url = f"{kind.root}/namespaces/{self.namespace}/{kind.plural}/{name}"
        status, found = await self.send("GET", url)
        live = found if status == 200 else None
        intent = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": self.intents.metadata(name)}
        intent |= self.intents.of(kind.kind)
        if self.random.random() < 0.5:
            await self.apply(kind, url, live, intent, self.random.choice(APPLIERS))
        else:
            await self.update(kind, url, live, intent, self.random.choice(UPDATERS))

    async def apply(self, kind: Kind, url: str, live: Any, intent: dict[str, Any], manager: str) -> None:
        force = self.random.random() < 0.5
        query = f"fieldManager={manager}&force={str(force).lower()}"
        status, answer = await self.send("PATCH", f"{url}?{query}", intent, form="apply-patch+yaml")
        said = f"{manager} applies, {force=}: {json.dumps(intent)}\non {json.dumps(live)}\n{json.dumps(answer)}"
        outcome: Any
        try:
            outcome = kind.fields.apply(
                live or kind.empty, intent, manager=manager, now=NOW, force=force, empty=kind.empty
            )
        except PatchError as error:
            outcome = error
        if isinstance(outcome, ApplyConflicts):
            told = {cause["field"] for cause in answer["details"]["causes"]} if status == 409 else status
            assert told == {format_path(each.path) for each in outcome.conflicts}, said
            self.conflicts += 1
        elif isinstance(outcome, PatchError):
            assert status >= 400, f"{said}\n{outcome}"
        elif status >= 400:
            # it merges, but is not valid
            assert answer["code"] == 422, said
        else:
            assert owners(outcome) == owners(answer), said
            if kind.kind == "Sample":
                # what is defaulted and written by types of Go is compared as a whole elsewhere
                assert content(outcome) == content(answer), said
            self.same += 1

    async def update(self, kind: Kind, url: str, live: Any, intent: dict[str, Any], manager: str) -> None:
        replaces = live is not None and self.random.random() < 0.5
        if live is None:
            status, answer = await self.send("POST", f"{url.rpartition('/')[0]}?fieldManager={manager}", intent)
        elif replaces:
            intent["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"]
            status, answer = await self.send("PUT", f"{url}?fieldManager={manager}", intent)
        else:
            patch = {name: value for name, value in intent.items() if name not in {"apiVersion", "kind"}}
            status, answer = await self.send("PATCH", f"{url}?fieldManager={manager}", patch, form="merge-patch+json")
        if status >= 400:
            return
        new = copy.deepcopy(answer)
        new["metadata"].pop("managedFields", None)
        if live is None or replaces:
            for field in ADDRESSES:
                new.get("spec", {}).pop(field, None)
        outcome = kind.fields.update(live, new, manager=manager, now=NOW, empty=kind.empty)
        said = f"{manager} writes {json.dumps(intent)}\non {json.dumps(live)}\n{json.dumps(answer)}"
        assert owners(outcome) == owners(answer), said
        self.same += 1


def owners(tree: Mapping[str, Any]) -> dict[tuple[str, ...], str]:
    return {
        (entry["manager"], entry["operation"], entry["apiVersion"], entry.get("subresource", "")): str(
            FieldSet.parse(entry["fieldsV1"])
        )
        for entry in tree["metadata"].get("managedFields", [])
    }


def content(tree: Mapping[str, Any]) -> Any:
    """An object without what the server drops and adds after the merge: nulls, defaults, what is empty in metadata."""
    metadata = {name: value for name, value in tree["metadata"].items() if value and name not in SYSTEM}
    return _plain({**tree, "metadata": metadata})


def _plain(tree: Any) -> Any:
    if isinstance(tree, dict):
        kept = {
            name: value for name, value in tree.items() if value is not None and (name, value) != ("protocol", "TCP")
        }
        return {name: _plain(value) for name, value in kept.items()}
    return [_plain(each) for each in tree] if isinstance(tree, list) else tree


async def test_random_applies_and_updates_leave_what_they_leave_on_the_engine(
    engine: Engine, namespace: str, crd_group: str
) -> None:
    await install(engine, crd_group)
    kinds = [
        Kind.built_in("ConfigMap", "v1", "configmaps", "core.v1"),
        Kind.built_in("Service", "v1", "services", "core.v1"),
        Kind.built_in("Deployment", "apps/v1", "deployments", "apps.v1"),
        Kind("Sample", f"{crd_group}/v1", "samples", MergeSchema(SCHEMA)),
    ]
    connector = aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=str(engine.ca_file)))
    headers = {"Authorization": f"Bearer {engine.admin_token}"}
    async with aiohttp.ClientSession(engine.url, connector=connector, headers=headers) as session:
        play = Play(session, namespace, Intents(SEED))
        number = 0
        while play.same < STEPS:
            number += 1
            kind = play.random.choice(kinds)
            for _ in range(50):
                await play.step(kind, f"object-{number}")
    assert play.conflicts > STEPS / 50
