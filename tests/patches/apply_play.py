"""Plays random writes to one object on the engine, and holds what it answers against what is computed here."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any

import aiohttp
from patches.apply_kinds import Endpoint

from samples.random_intents import Intents
from steersman.patches import (
    ApplyConflicts,
    PatchError,
    apply_merge_patch,
    format_path,
    read_managed_fields,
    write_managed_fields,
)

APPLIERS = ("ada", "ben", "cleo", "kubectl")
#: More than an object keeps entries of.
UPDATERS = tuple(f"updater-{number:02}" for number in range(14))
NOW = "2030-01-01T00:00:00Z"
#: What a Service gets after the server has recorded who owns what.
ADDRESSES = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")
#: What only the server sets.
SYSTEM = ("managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "namespace")
STEPS_OF_AN_OBJECT = 50


class Said:
    """What was sent, and what was answered; put into words only for a failure."""

    def __init__(self, what: str, sent: Any, live: Any, answer: Any) -> None:
        self._what, self._trees = what, (sent, live, answer)

    def __str__(self) -> str:
        sent, live, answer = (json.dumps(tree) for tree in self._trees)
        return f"{self._what}: {sent}\non {live}\nanswered {answer}"


class Play:
    """The writes to one object."""

    def __init__(
        self, session: aiohttp.ClientSession, namespace: str, name: str, endpoints: list[Endpoint], intents: Intents
    ) -> None:
        self._session, self._namespace, self._name, self._endpoints = session, namespace, name, endpoints
        self._intents, self._random = intents, intents.random
        #: The object in the version in which it was last seen; None until it is there.
        self._live: Any = None
        self.same = self.conflicts = self.refused = 0

    async def run(self) -> Play:
        for _ in range(STEPS_OF_AN_OBJECT):
            await self._step()
        return self

    async def _send(self, method: str, url: str, body: Any = None, *, form: str = "json") -> tuple[int, Any]:
        headers = {"Content-Type": f"application/{form}"}
        data = None if body is None else json.dumps(body)
        async with self._session.request(method, url, data=data, headers=headers) as response:
            return response.status, json.loads(await response.read())

    async def _step(self) -> None:
        endpoint = self._random.choice(self._endpoints)
        if self._live is None and endpoint.subresource:
            endpoint = self._endpoints[0]
        if self._live is not None and self._live["apiVersion"] != endpoint.api_version:
            _, self._live = await self._send("GET", f"{endpoint.collection(self._namespace)}/{self._name}")
        intent = {"apiVersion": endpoint.api_version, "kind": endpoint.kind} | self._intents.object(
            endpoint.kind, self._name, endpoint.api_version.rpartition("/")[2], endpoint.subresource
        )
        if self._random.random() < 0.5:
            await self._apply(endpoint, intent, self._random.choice(APPLIERS))
        else:
            await self._update(endpoint, intent, self._random.choice(UPDATERS))

    def _url(self, endpoint: Endpoint) -> str:
        url = f"{endpoint.collection(self._namespace)}/{self._name}"
        return f"{url}/{endpoint.subresource}" if endpoint.subresource else url

    async def _apply(self, endpoint: Endpoint, intent: dict[str, Any], manager: str) -> None:
        force = self._random.random() < 0.5
        live = self._live
        query = f"fieldManager={manager}&force={str(force).lower()}"
        status, answer = await self._send("PATCH", f"{self._url(endpoint)}?{query}", intent, form="apply-patch+yaml")
        said = Said(f"{manager} applies, {force=}", intent, live, answer)
        outcome: Any
        try:
            outcome = endpoint.fields.apply(
                live or endpoint.empty, intent, manager=manager, now=NOW, force=force, empty=endpoint.empty
            )
        except PatchError as error:
            outcome = error
        if isinstance(outcome, ApplyConflicts):
            told = {cause["field"] for cause in answer["details"]["causes"]} if status == 409 else status
            assert told == {format_path(each.path) for each in outcome.conflicts}, str(said)
            self.conflicts += 1
        elif isinstance(outcome, PatchError):
            # neither merges it there, for the types of a value or of what is in another version
            assert status >= 400, f"{said}\n{outcome}"
            assert status != 409, f"{said}\n{outcome}"
            self.refused += 1
        elif status >= 400:
            # it merges, but is not valid
            assert answer["code"] == 422, str(said)
            self.refused += 1
        else:
            check_owners(outcome, answer, live, said)
            if endpoint.kind == "Sample":
                # what is defaulted and written by types of Go is compared as a whole elsewhere
                ours = content(_kept(endpoint, outcome, live))
                assert ours == content(answer), f"{said}\nhere: {json.dumps(ours)}"
            self._live = answer
            self.same += 1

    async def _update(self, endpoint: Endpoint, intent: dict[str, Any], manager: str) -> None:
        live, url = self._live, f"{self._url(endpoint)}?fieldManager={manager}"
        sent: Any
        if live is None:
            sent = intent
            status, answer = await self._send("POST", f"{url.rpartition('/')[0]}?fieldManager={manager}", intent)
        elif (way := self._random.random()) < 0.4:
            sent = self._replacement(endpoint, intent)
            status, answer = await self._send("PUT", url, sent)
        else:
            patch = {name: value for name, value in intent.items() if name not in {"apiVersion", "kind"}}
            patch |= self._forgetting(way)
            sent = apply_merge_patch(live, patch)
            if way < 0.7:
                status, answer = await self._send("PATCH", url, patch, form="merge-patch+json")
            else:
                steps = [{"op": "add", "path": f"/{name}", "value": value} for name, value in sent.items()]
                status, answer = await self._send("PATCH", url, steps, form="json-patch+json")
        if status >= 400:
            self.refused += 1
            return
        new = copy.deepcopy(answer)
        _restore_sent(endpoint, new, sent, replaced=live is None or way < 0.4)
        said = Said(f"{manager} writes", sent, live, answer)
        try:
            outcome = endpoint.fields.update(live, new, manager=manager, now=NOW, empty=endpoint.empty)
        except PatchError:
            # the owners stay as they were: another version cannot express them
            before = (live or {}).get("metadata", {})
            assert answer["metadata"].get("managedFields") == before.get("managedFields"), str(said)
        else:
            check_owners(outcome, answer, live, said)
        self._live = answer
        self.same += 1

    def _replacement(self, endpoint: Endpoint, intent: dict[str, Any]) -> dict[str, Any]:
        if endpoint.subresource:
            return {**self._live, "status": intent["status"]}
        intent["metadata"]["resourceVersion"] = self._live["metadata"]["resourceVersion"]
        intent["metadata"] |= self._forgetting(self._random.random()).get("metadata", {})
        return intent

    def _forgetting(self, chance: float) -> dict[str, Any]:
        """Managed fields as a client might send them; mostly none."""
        entries = (self._live or {"metadata": {}})["metadata"].get("managedFields", [])
        if int(chance * 1000) % 20 or not entries:
            return {}
        sent = self._random.choice(
            [
                [],
                [{}],
                entries[:-1],
                [entries[0] | {"manager": "renamed"}, *entries[1:]],
                [entries[0] | {"apiVersion": "example.com/v0"}, *entries[1:]],
                [entries[0] | {"fieldsV1": {"q": {}}}],
                [entries[0] | {"operation": "Guess"}],
            ]
        )
        return {"metadata": {"managedFields": sent}}


def _restore_sent(endpoint: Endpoint, new: dict[str, Any], sent: dict[str, Any], *, replaced: bool) -> None:
    """Make of an answer what the server held before it put back what the endpoint does not change."""
    new["metadata"].pop("managedFields", None)
    entries = sent["metadata"].get("managedFields")
    # of custom resources the server drops what is empty in metadata as it reads them
    if entries or (entries is not None and endpoint.kind != "Sample"):
        new["metadata"]["managedFields"] = entries
    if endpoint.kind == "Sample" and not endpoint.subresource:
        new.pop("status", None)
        if "status" in sent:
            new["status"] = sent["status"]
    if replaced and endpoint.kind == "Service":
        for field in ADDRESSES:
            new.get("spec", {}).pop(field, None)


def _kept(endpoint: Endpoint, outcome: dict[str, Any], live: Any) -> dict[str, Any]:
    """An outcome as it is once the endpoint has put back what it does not change."""
    changed, unchanged = (outcome, live or {}) if endpoint.subresource else (live or {}, outcome)
    kept = {name: value for name, value in unchanged.items() if name != "status"}
    return kept | ({"status": changed["status"]} if "status" in changed else {})


def check_owners(outcome: Mapping[str, Any], answer: Mapping[str, Any], live: Any, said: Said) -> None:
    """Who owns what, since when, in which order."""
    ours, theirs = _by_owner(outcome), _by_owner(answer)
    assert ours.keys() == theirs.keys(), str(said)
    before = _by_owner(live) if live else {}
    for owner, entry in ours.items():
        other = theirs[owner]
        assert entry["fieldsV1"] == other["fieldsV1"], f"{owner}\n{said}"
        if entry.get("time") != NOW:
            assert entry.get("time") == other.get("time"), f"{owner}\n{said}"
        else:
            assert other["time"] >= before.get(owner, {}).get("time", ""), f"{owner}\n{said}"
            entry["time"] = other["time"]
    ordered = write_managed_fields(read_managed_fields(list(ours.values())))
    assert list(_keys(ordered)) == list(_keys(answer["metadata"].get("managedFields", []))), str(said)


def _by_owner(tree: Mapping[str, Any]) -> dict[tuple[str, ...], dict[str, Any]]:
    entries = tree["metadata"].get("managedFields", [])
    return dict(zip(_keys(entries), (dict(entry) for entry in entries), strict=True))


def _keys(entries: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    return [
        (entry["manager"], entry["operation"], entry["apiVersion"], entry.get("subresource", "")) for entry in entries
    ]


def content(tree: Mapping[str, Any]) -> Any:
    """An object without what the server drops and adds after the merge: nulls, defaults, what is empty in metadata."""
    return _plain(
        {**tree, "metadata": {name: tree["metadata"][name] for name in tree["metadata"] if name not in SYSTEM}}
    )


def _plain(tree: Any) -> Any:
    if isinstance(tree, dict):
        found = {
            name: _plain(value)
            for name, value in tree.items()
            if value is not None and (name, value) != ("protocol", "TCP")
        }
        if "apiVersion" in found:
            # an object, or one inside of it
            found["metadata"] = {name: value for name, value in found.get("metadata", {}).items() if value}
        return found
    return [_plain(each) for each in tree] if isinstance(tree, list) else tree
