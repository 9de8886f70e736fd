"""What is done with one definition on one server, and what was answered.

Guarantees: the requests depend on the definition and the seed alone, except where a server's own answers decide whether
there is an object to go on with; so that two servers which answer alike are asked alike.
"""

from __future__ import annotations

import asyncio
import copy
import json
from dataclasses import dataclass, field
from random import Random  # noqa: TID251 - seeded, and the run prints the seed
from typing import Any

from field_crds.definitions import Definition
from field_crds.mutations import EDITS, MUTATIONS, changed, mutated
from field_crds.normalization import shared
from field_crds.objects import Maker

from samples.raw_api import APPLY, JSON_PATCH, MERGE, RawAnswer, RawApi

Tree = dict[str, Any]
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
VALIDATIONS = ("Strict", "Warn", "Ignore")
#: A condition of definitions in groups that belong to Kubernetes.
_APPROVAL = "KubernetesAPIApprovalPolicyConformant"
#: How long a server may take to serve a definition, or to let it go.
SECONDS = 60.0


@dataclass(slots=True)
class Exchange:
    """A request, in short, and what came back."""

    label: str
    asked: str
    answer: Tree
    #: What was sent.
    body: Any = None


@dataclass(slots=True)
class Play:
    """One definition on one server."""

    api: RawApi
    definition: Definition
    namespace: str
    seed: str
    exchanges: list[Exchange] = field(default_factory=list)

    async def run(self) -> list[Exchange]:
        """Do everything."""
        await self._install()
        for version in self.definition.served:
            await _Version(self, version).run()
        await self._remove()
        return self.exchanges

    async def ask(
        self, label: str, method: str, target: str, body: Any = None, *, content_type: str = "application/json"
    ) -> RawAnswer:
        """Send a request and keep what is answered."""
        answer = await self.api.send(method, target, body, content_type=content_type)
        self.exchanges.append(Exchange(label, f"{method} {target}", shared(answer), body))
        return answer

    async def _install(self) -> None:
        name = self.definition.name
        await self.ask(
            "create the definition, dry", "POST", f"{CRDS}?dryRun=All&fieldManager=field", self.definition.tree
        )
        made = await self.ask("create the definition", "POST", f"{CRDS}?fieldManager=field", self.definition.tree)
        assert made.code == 201, f"{name} cannot be made: {made.body}"
        async with asyncio.timeout(SECONDS):
            while not await self._is_served():  # noqa: ASYNC110 - the server is asked
                await asyncio.sleep(0.1)
        await self.ask("the definition", "GET", f"{CRDS}/{name}")
        plural = self.definition.tree["spec"]["names"]["plural"]
        for version in self.definition.served:
            group = await self.api.made("GET", f"/apis/{self.definition.group}/{version['name']}")
            mine = [each for each in group["resources"] if each["name"].partition("/")[0] == plural]
            told = {"resources": sorted(mine, key=lambda each: each["name"])}
            self.exchanges.append(Exchange(f"{version['name']}: discovery", "", told))

    async def _is_served(self) -> bool:
        tree = await self.api.made("GET", f"{CRDS}/{self.definition.name}")
        conditions = {each["type"]: each["status"] for each in tree.get("status", {}).get("conditions") or []}
        wanted = {
            "Established",
            *({_APPROVAL} if self.definition.group.endswith((".k8s.io", ".kubernetes.io")) else ()),
        }
        if not wanted <= conditions.keys() or conditions["Established"] != "True":
            return False
        # the engine's handler learns of it a little later
        for version in self.definition.served:
            target = self.definition.path(version["name"], self.namespace)
            if (await self.api.send("GET", f"{target}?limit=1")).code != 200:
                return False
            if (await self.api.send("GET", f"/apis/{self.definition.group}/{version['name']}")).code != 200:
                return False
        return True

    async def _remove(self) -> None:
        await self.ask("delete the definition", "DELETE", f"{CRDS}/{self.definition.name}")
        async with asyncio.timeout(SECONDS):
            while (await self.api.send("GET", f"{CRDS}/{self.definition.name}")).code != 404:  # noqa: ASYNC110
                await asyncio.sleep(0.1)


class _Version:
    """One served version of a definition."""

    def __init__(self, play: Play, version: Tree) -> None:
        self._play = play
        self._definition = play.definition
        self._version = version
        self._name = version["name"]
        self._schema: Tree = version["schema"]["openAPIV3Schema"]
        self._maker = Maker(self._schema, f"{play.seed} {play.definition.name} {self._name}")
        self._chance = Random(f"{play.seed} {play.definition.name} {self._name} changes")
        self._subresources = version.get("subresources", {})

    async def run(self) -> None:
        minimal, rich, other = self._maker.minimal(), self._maker.rich(), self._maker.rich()
        await self._create(minimal, rich, other)
        await self._refuse(minimal, rich)
        kept = await self._kept(minimal, rich, other)
        if kept is not None:
            await self._update(*kept)
            await self._patch(kept[0], other)
            await self._apply(kept[0], kept[1], other)
            await self._status(kept[0])
            await self._scale(kept[0])
        await self._list()
        await self._delete()

    # steps

    async def _create(self, minimal: Tree, rich: Tree, other: Tree) -> None:
        for label, body in (("minimal", minimal), ("rich", rich), ("other", other)):
            await self._post(f"dry create {label}", self._object("dry", body), "dryRun=All&fieldValidation=Strict")
        await self._post("create minimal", self._object("minimal", minimal))
        await self._post("create rich", self._object("rich", rich), "fieldValidation=Strict")
        for version in self._definition.served:
            await self._ask(f"read as {version['name']}", "GET", self._path("rich", version["name"]))

    async def _refuse(self, minimal: Tree, rich: Tree) -> None:
        number = 0
        for base, whole in (("minimal", minimal), ("rich", rich)):
            for label, change in MUTATIONS.items():
                changed_body = mutated(whole, self._schema, change, self._chance)
                if changed_body is None:
                    continue
                body = self._object("odd", changed_body)
                validations = VALIDATIONS if label == "unknown" else (VALIDATIONS[number % 3],)
                number += 1
                for validation in validations:
                    query = f"dryRun=All&fieldValidation={validation}"
                    await self._post(f"{base} {label}, {validation}", body, query)
        text = json.dumps(self._object("twice", minimal))
        doubled = text[:-1] + ', "metadata": {"name": "again"}}'
        for validation in VALIDATIONS:
            await self._post(f"a key twice, {validation}", doubled.encode(), f"dryRun=All&fieldValidation={validation}")
        odd = self._object("odd", minimal) | {"kind": "Nothing"}
        await self._post("of another kind", odd, "dryRun=All")
        odd = self._object("Odd_Name", minimal)
        odd["metadata"] |= {"labels": {"-": "!"}, "nobodyKnows": 1}
        await self._post("with odd metadata", odd, "dryRun=All&fieldValidation=Warn")

    async def _kept(self, *bodies: Tree) -> tuple[str, Tree] | None:
        """An object to go on with: its name, and what was asked for."""
        for name, body in zip(("rich", "minimal"), (bodies[1], bodies[0]), strict=True):
            if (await self._play.api.send("GET", self._path(name))).code == 200:
                return name, body
        return None

    async def _update(self, name: str, body: Tree) -> None:
        live = await self._live(name)
        await self._put("the same again", name, live)
        # what was written by another version may have been stored anew
        live = await self._live(name)
        await self._put("without a version", name, self._object(name, body))
        for label, change in {**EDITS, **MUTATIONS}.items():
            new = mutated(live, self._schema, change, self._chance)
            if new is not None:
                await self._put(f"{label}, dry", name, new, "dryRun=All&fieldValidation=Warn")
        for number in range(2):
            live = await self._live(name)
            new = mutated(live, self._schema, changed, self._chance)
            if new is not None:
                await self._put(f"change {number}", name, new)

    async def _patch(self, name: str, other: Tree) -> None:
        keys = sorted(other.get("spec", {})) if isinstance(other.get("spec"), dict) else []
        for key in self._chance.sample(keys, min(2, len(keys))):
            patch = {"spec": {key: other["spec"][key]}}
            await self._ask(f"merge {key}", "PATCH", self._path(name, query="dryRun=All"), patch, content_type=MERGE)
            patch = [{"op": "remove", "path": f"/spec/{key}"}]
            target = self._path(name, query="dryRun=All&fieldValidation=Strict")
            await self._ask(f"remove {key}", "PATCH", target, patch, content_type=JSON_PATCH)
        patch = {"metadata": {"labels": {"merged": "yes"}}, "spec": {"nobodyKnows": True}}
        await self._ask(
            "merge a label", "PATCH", self._path(name, query="fieldValidation=Warn"), patch, content_type=MERGE
        )

    async def _apply(self, name: str, body: Tree, other: Tree) -> None:
        async def apply(label: str, target: str, tree: Tree, manager: str, query: str = "") -> None:
            where = self._path(target, query=f"fieldManager={manager}{query}")
            await self._ask(f"apply {label}", "PATCH", where, self._object(target, tree), content_type=APPLY)

        await apply("the same", name, body, "one")
        await apply("another, dry", name, other, "two", "&dryRun=All")
        await apply("another by force, dry", name, other, "two", "&dryRun=All&force=true")
        await apply("another by force", name, other, "two", "&force=true")
        await apply("less", name, {"spec": {}}, "one", "&dryRun=All")
        await apply("a new one", "applied", body, "one")
        odd = mutated(body, self._schema, MUTATIONS["unknown"], self._chance)
        if odd is not None:
            for validation in VALIDATIONS:
                await apply(
                    f"unknown, {validation}", name, odd, "one", f"&force=true&dryRun=All&fieldValidation={validation}"
                )

    async def _status(self, name: str) -> None:
        status = self._maker.status()
        if "status" not in self._subresources or status is None:
            return
        live = await self._live(name) | {"status": status}
        await self._ask("write the status", "PUT", self._path(f"{name}/status", query="fieldManager=field"), live)
        live = await self._live(name)
        for label, change in MUTATIONS.items():
            schema = self._schema["properties"]["status"]
            odd = mutated({"status": status}, {"properties": {"status": schema}}, change, self._chance)
            if odd is not None:
                target = self._path(f"{name}/status", query="fieldManager=field&dryRun=All")
                await self._ask(f"status {label}", "PUT", target, live | odd)
        patch = {"status": self._maker.status(rich=False), "metadata": {"labels": {"by": "status"}}}
        await self._ask("merge the status", "PATCH", self._path(f"{name}/status"), patch, content_type=MERGE)

    async def _scale(self, name: str) -> None:
        if "scale" not in self._subresources:
            return
        read = await self._ask("scale", "GET", self._path(f"{name}/scale"))
        if read.code == 200:
            scaled = copy.deepcopy(read.body)
            scaled["spec"] = {"replicas": 7}
            await self._ask("set the scale", "PUT", self._path(f"{name}/scale"), scaled)

    async def _list(self) -> None:
        await self._ask("list", "GET", self._path(query="labelSelector=seed"))
        await self._ask("select by name", "GET", self._path(query="fieldSelector=metadata.name=rich"))
        for each in self._version.get("selectableFields", []):
            path = each["jsonPath"].removeprefix(".")
            await self._ask(f"select by {path}", "GET", self._path(query=f"fieldSelector={path}=web"))
        await self._ask("select by an unknown field", "GET", self._path(query="fieldSelector=spec.nobodyKnows=1"))

    async def _delete(self) -> None:
        await self._ask("delete the wrong one", "DELETE", self._path("minimal"), {"preconditions": {"uid": "wrong"}})
        for name in ("minimal", "rich", "applied"):
            await self._ask(f"delete {name}", "DELETE", self._path(name))

    # requests

    def _object(self, name: str, body: Tree) -> Tree:
        api_version = f"{self._definition.group}/{self._name}"
        metadata: Tree = {"name": name, "labels": {"seed": self._play.seed}}
        if self._definition.namespaced:
            metadata["namespace"] = self._play.namespace
        return {"apiVersion": api_version, "kind": self._definition.kind, "metadata": metadata, **copy.deepcopy(body)}

    def _path(self, name: str = "", version: str = "", query: str = "") -> str:
        path = self._definition.path(version or self._name, self._play.namespace, name)
        return f"{path}?{query}" if query else path

    async def _live(self, name: str) -> Tree:
        return await self._play.api.made("GET", self._path(name))

    async def _ask(self, label: str, method: str, target: str, body: Any = None, **how: Any) -> RawAnswer:
        return await self._play.ask(f"{self._name}: {label}", method, target, body, **how)

    async def _post(self, label: str, body: Any, query: str = "") -> RawAnswer:
        return await self._ask(label, "POST", self._path(query=f"fieldManager=field&{query}"), body)

    async def _put(self, label: str, name: str, body: Tree, query: str = "") -> RawAnswer:
        return await self._ask(f"update {label}", "PUT", self._path(name, query=f"fieldManager=field&{query}"), body)
