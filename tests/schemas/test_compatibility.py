# ruff: noqa: T201 - the full form tells how many alarms were false
"""What `definition_changes` calls safe, stored objects and their clients survive on kube-apiserver; what it calls breaking breaks."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random  # noqa: TID251 - seeded by the run
from typing import Any

import msgspec
import pytest

from samples import portions
from samples.random_schemas import changed_schema, random_object, random_value, with_notes
from samples.schema_server import Server, collection
from steersman.schemas import definition_changes

Tree = dict[str, Any]

COUNT = portions.count(sample=12, of=240)
#: Kinds that the engine serves at a time.
BATCH = 24
OBJECTS = 6
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@dataclass
class Case:
    """A definition, what replaces it, and how objects fared."""

    number: int
    old: Tree
    new: Tree
    #: What was changed.
    name: str
    manifests: list[Tree] = field(default_factory=list[Tree])
    #: The spec of each object after its creation, and at last: with what another manager wrote.
    created: list[Tree] = field(default_factory=list[Tree])
    stored: list[Tree] = field(default_factory=list[Tree])
    #: The first failure, or why the server refused the definition.
    broken: str = ""
    refused: str = ""

    @property
    def breaking(self) -> list[str]:
        """What the tool says."""
        changes = definition_changes([self.old], [self.new])
        return [f"{each.path}: {each.what}" for each in changes if each.breaks]

    def path(self, name: str = "") -> str:
        return collection(self.old, "v1") + (f"/{name}" if name else "")


def definition(number: int, spec: Tree, column: str) -> Tree:
    """A definition whose column tells which one the server uses."""
    status = {"type": "object", "properties": {"phase": {"type": "string"}}}
    schema = {"type": "object", "properties": {"spec": spec, "status": status}}
    plural = f"things{number}"
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
        "additionalPrinterColumns": [{"name": column, "type": "string", "jsonPath": ".status.phase"}],
    }
    group = f"g{number}.compatibility.steersman.dev"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "names": {"kind": f"Thing{number}", "plural": plural},
            "scope": "Namespaced",
            "versions": [version],
        },
    }


def spec_schema(definition: Tree) -> Tree:
    return definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]


def random_case(seed: int, number: int) -> Case:
    rng = Random(f"{seed}/{number}")
    spec = random_object(rng)
    name, changed = changed_schema(rng, spec)
    case = Case(number, definition(number, spec, "old"), definition(number, changed, "new"), name)
    kind = {"apiVersion": f"{case.old['spec']['group']}/v1", "kind": case.old["spec"]["names"]["kind"]}
    case.manifests = [
        {**kind, "metadata": {"name": f"object-{each}", "namespace": "default"}, "spec": random_value(rng, spec)}
        for each in range(OBJECTS)
    ]
    return case


async def send(
    server: Server, method: str, path: str, body: Any = None, content: str = "application/json", **query: str
) -> tuple[int, Tree]:
    headers = {"Content-Type": content, "Accept": query.pop("accept", "application/json")}
    data = None if body is None else msgspec.json.encode(body)
    async with server.session.request(method, path, data=data, params=query, headers=headers) as answer:
        raw = await answer.read()
        try:
            return answer.status, msgspec.json.decode(raw)
        except msgspec.DecodeError:
            return answer.status, {"message": raw.decode()}


async def apply(server: Server, case: Case, manifest: Tree) -> tuple[int, Tree]:
    path = case.path(manifest["metadata"]["name"])
    return await send(server, "PATCH", path, manifest, APPLY, fieldManager="app", force="true")


async def store(server: Server, case: Case) -> None:
    """Store the objects that fit the old definition, with notes of another manager."""
    fitting: list[Tree] = []
    for manifest in case.manifests:
        code, answer = await apply(server, case, manifest)
        if code != 201:
            assert code == 422, answer
            continue
        path = case.path(manifest["metadata"]["name"])
        noted = answer | {"spec": with_notes(spec_schema(case.old), answer["spec"], "noted")}
        code, refused = await send(server, "PUT", path, noted, fieldManager="other")
        assert code == 200, refused
        code, refused = await send(server, "PATCH", f"{path}/status", {"status": {"phase": "old"}}, MERGE)
        assert code == 200, refused
        code, again = await apply(server, case, manifest)
        assert code == 200, again
        fitting.append(manifest)
        case.created.append(answer["spec"])
        case.stored.append(again["spec"])
    case.manifests = fitting


async def replace(server: Server, case: Case) -> None:
    """Replace the definition."""
    path = f"{CRDS}/{case.old['metadata']['name']}"
    _, current = await send(server, "GET", path)
    code, answer = await send(server, "PUT", path, current | {"spec": current["spec"] | case.new["spec"]})
    if code != 200:
        case.refused = answer["message"]


async def wait_until_used(server: Server, case: Case) -> None:
    async with asyncio.timeout(60):
        while not case.refused:
            code, table = await send(server, "GET", case.path(), accept=TABLE)
            if code == 200 and "new" in [each["name"] for each in table["columnDefinitions"]]:
                return
            await asyncio.sleep(0.02)  # no event says that a server uses a definition


async def lived_through(server: Server, case: Case) -> None:
    """Let old clients go on with the stored objects; records the first failure."""
    for manifest, created, stored in zip(case.manifests, case.created, case.stored, strict=True):
        name = manifest["metadata"]["name"]
        path = case.path(name)
        code, read = await send(server, "GET", path)
        steps: list[tuple[str, int, Tree, Tree]] = [("read", code, read, stored)]
        if code == 200:
            steps.append(("update unchanged", *await send(server, "PUT", path, read), stored))
            steps.append(("apply again", *await apply(server, case, manifest), stored))
            status = {"status": {"phase": "new"}}
            steps.append(("patch status", *await send(server, "PATCH", f"{path}/status", status, MERGE), stored))
            _, latest = await send(server, "GET", path)
            noted = latest | {"spec": with_notes(spec_schema(case.new), latest.get("spec"), "written")}
            steps.append(("update another field", *await send(server, "PUT", path, noted), created))
        again = copy.deepcopy(manifest) | {"metadata": {"name": f"{name}-again", "namespace": "default"}}
        steps.append(("create", *await send(server, "POST", case.path(), again), created))
        for step, code, answer, before in steps:
            if code not in {200, 201}:
                case.broken = f"{step} {manifest['spec']}: {code} {answer.get('message')}"
                return
            if lost := next(losses(before, answer.get("spec"), "spec"), None):
                case.broken = f"{step} {manifest['spec']}: {lost}"
                return


def losses(before: Any, after: Any, path: str) -> Iterator[str]:
    """What of a value is gone or different."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name, value in before.items():
            if name in after:
                yield from losses(value, after[name], f"{path}.{name}")
            else:
                yield f"{path}.{name} is gone"
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, pair in enumerate(zip(before, after, strict=True)):
            yield from losses(*pair, f"{path}[{number}]")
    elif before != after:
        yield f"{path} is {after!r}, was {before!r}"


async def play(server: Server, cases: list[Case]) -> None:
    """Each step for all cases: the server takes a while to use a definition."""
    for case in cases:
        code, answer = await send(server, "POST", CRDS, case.old)
        if code == 201:
            server.installed.append(case.old["metadata"]["name"])
        else:
            case.refused = answer["message"]
    cases = [case for case in cases if not case.refused]
    for case in cases:
        await server.install(case.old)
        await store(server, case)
    for case in cases:
        await replace(server, case)
    for case in cases:
        await wait_until_used(server, case)
        if not case.refused:
            await lived_through(server, case)
    for case in cases:
        await send(server, "DELETE", f"{CRDS}/{case.old['metadata']['name']}")


@pytest.mark.slow
async def test_what_is_called_safe_breaks_no_object(server: Server) -> None:
    """A definition that is called safe must never lock a user out of stored objects, nor take a field from them."""
    seed = portions.seed_of("compatibility")
    cases = [random_case(seed, number) for number in range(COUNT)]
    for start in range(0, COUNT, BATCH):
        await play(server, cases[start : start + BATCH])
    judged = [case for case in cases if case.stored and not case.refused]
    safe, breaking = ([case for case in judged if bool(case.breaking) is wrong] for wrong in (False, True))
    wrong = [f"{case.number} {case.name}: {case.broken}" for case in safe if case.broken]
    alarms = [f"{case.number} {case.name}: {case.breaking}" for case in breaking if not case.broken]
    print(
        f"{COUNT} changes, {COUNT - len(judged)} refused or without objects; {len(safe)} safe, {len(breaking)} breaking"
    )
    print(f"{len(alarms)} of {len(breaking)} breaking ones broke no object:", *alarms, sep="\n  ")
    print("refused:", *(f"{case.number} {case.name}: {case.refused}" for case in cases if case.refused), sep="\n  ")
    assert not wrong, "\n".join(wrong)
    assert len(judged) * 4 > COUNT * 3, "most generated changes are judged"
    if len(breaking) > 40:
        assert len(alarms) * 2 < len(breaking), "most breaks are shown by an object"
