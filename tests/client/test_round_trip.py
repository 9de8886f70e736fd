"""No lost fields: random objects are read, changed, copied and written, and nothing else changes.

Each object is created as JSON, read through a type, changed as a program changes objects, and updated. What the server
then holds must be the JSON it held before with that very change made by hand. Types are whole ones of ``steersman.kinds``,
thin ones that know a random part of them, and three generations of a custom kind whose definition knows more than they do.

`samples.portions` says how many objects make the trip, and which.
"""

import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from random import Random  # noqa: TID251 - seeded, and the run prints the seed

import msgspec
import pytest

from samples import portions
from samples.changes import change_some, duplicate
from samples.gadget import CHANGES, DEFINITION, GENERATIONS, GROUP, gadget
from samples.random_values import metadata
from samples.round_trips import CLUSTER, LIMITED, RECIPES
from samples.thin import Thinner
from samples.thin_kinds import THIN
from steersman import Client, Key, MergePatch
from steersman.aio import name_suffix
from steersman.client.verbs.installation import CUSTOM_RESOURCE_DEFINITION, _wait_until_established, _wait_until_served
from steersman.errors import Conflict
from steersman.objects import Unstructured, decode, raw_of, to_json
from steersman.testing import Engine

TRIPS = portions.count(sample=80, of=1000)
SEED = portions.seed_of("round trips")
AT_ONCE = 8


@pytest.fixture
async def client(api_server):
    """A client that expects warnings: some of the objects are odd on purpose."""
    async with Client.connect(
        kubeconfig=api_server.kubeconfig, field_manager="round-trips", on_warning=lambda _: None
    ) as client:
        yield client


@pytest.fixture
async def limited(api_server):
    """A namespace for quotas and limits, which would restrict what the other objects may be."""
    name = f"limited-{name_suffix()}"
    await api_server.create_namespace(name)
    yield name
    await api_server.delete_namespace(name)


def left_by_the_server(tree):
    """What a server changes by itself whenever something is written."""
    tree = dict(tree, metadata=dict(tree["metadata"]))
    for name in ("resourceVersion", "generation", "managedFields"):
        tree["metadata"].pop(name, None)
    annotations = dict(tree["metadata"].get("annotations", {}))
    annotations.pop("deprecated.daemonset.template.generation", None)
    tree["metadata"]["annotations"] = annotations
    return tree


def differences(expected, got, path=""):
    """Where two trees differ, in words."""
    if isinstance(expected, dict) and isinstance(got, dict):
        for name in sorted(expected.keys() | got.keys()):
            if name not in got:
                yield f"{path}.{name} is lost: {expected[name]!r}"
            elif name not in expected:
                yield f"{path}.{name} was added: {got[name]!r}"
            else:
                yield from differences(expected[name], got[name], f"{path}.{name}")
    elif isinstance(expected, list) and isinstance(got, list) and len(expected) == len(got):
        for index, (one, other) in enumerate(zip(expected, got, strict=True)):
            yield from differences(one, other, f"{path}[{index}]")
    elif expected != got or isinstance(expected, bool) != isinstance(got, bool):
        yield f"{path} changed from {expected!r} to {got!r}"


class Trips:
    """Sends objects round, a few at a time."""

    def __init__(self, client, namespace, limited):
        self.client = client
        self.namespaces = {"namespaced": namespace, LIMITED: limited, CLUSTER: ""}
        self.changes = Counter()
        self.kinds = Counter()

    def path(self, cls, where):
        options = cls.__resource__
        prefix = f"/apis/{options.group}/{options.version}" if options.group else f"/api/{options.version}"
        namespace = f"/namespaces/{self.namespaces[where]}" if where != CLUSTER else ""
        return f"{prefix}{namespace}/{options.plural}"

    async def create(self, cls, where, rng, body):
        """Create an object from JSON; the path of it and what the server made of it."""
        named = {"metadata": metadata(rng, f"trip-{name_suffix(8)}")} | body
        tree = {"apiVersion": cls.gvk().api_version, "kind": cls.gvk().kind} | named
        path = self.path(cls, where)
        made = await self.client.request("POST", path, body=msgspec.json.encode(tree))
        return f"{path}/{msgspec.json.decode(made)['metadata']['name']}"

    async def go(self, path, cls, where, rng, changes, *, shared=False):
        """One trip: read, change, write; compare what is there with what should be."""
        while True:
            before = await self.client.get(cls, Key(self.namespaces[where], path.rpartition("/")[2]))
            expected = msgspec.json.decode(raw_of(before))
            obj = duplicate(rng, before)
            made = change_some(rng, obj, expected, changes)
            try:
                await self.client.update(duplicate(rng, obj))
                break
            except Conflict:
                if not shared:
                    raise
        after = msgspec.json.decode(await self.client.request("GET", path))
        self.changes.update(type(change).__name__ for change in made)
        self.kinds[cls.gvk().kind] += 1
        lost = list(differences(left_by_the_server(expected), left_by_the_server(after)))
        if shared:
            lost = [line for line in lost if not line.startswith(".status")]
        assert not lost, f"{cls.__name__}, after {[change.path for change in made]}: {lost}"

    async def run(self, count, trip):
        """Run ``trip(seed)`` for many seeds, some at a time; the first failure says its seed."""
        seeds = iter(range(SEED, SEED + count))

        async def worker():
            for seed in seeds:
                try:
                    await trip(seed)
                except Exception as error:
                    error.add_note(f"seed {seed}, the {seed - SEED + 1}th of this run")
                    raise

        async with asyncio.TaskGroup() as tasks:
            for _ in range(AT_ONCE):
                tasks.create_task(worker())


@pytest.fixture
async def trips(client, namespace, limited):
    return Trips(client, namespace, limited)


@pytest.fixture
async def gone_afterwards(client):
    """Objects outside of namespaces are deleted at the end."""
    async with AsyncExitStack() as stack:

        def note(cls, path):
            async def delete():
                key = Key("", path.rpartition("/")[2])
                await client.patch(cls, key, MergePatch({"metadata": {"finalizers": None}}))
                await client.delete(cls, key)

            stack.push_async_callback(delete)

        yield note


def test_without_a_server():
    """The same trips without their ends: what would be sent is what was read, and the change."""
    for seed in range(SEED, SEED + 400):
        rng = Random(seed)
        recipe = RECIPES[seed % len(RECIPES)]
        kinds = [(recipe.cls, recipe.make, recipe.changes), (rng.choice(GENERATIONS), gadget, CHANGES)]
        for cls, make, changes in kinds:
            tree = (
                {"apiVersion": cls.gvk().api_version, "kind": cls.gvk().kind}
                | make(rng)
                | {"metadata": metadata(rng, "a")}
            )
            raw = msgspec.json.encode(tree)
            known = cls if make is gadget or rng.random() < 0.5 else Thinner(rng, share=rng.random()).thin(cls)
            expected = msgspec.json.decode(raw)
            obj = duplicate(rng, decode(known, raw))
            made = change_some(rng, obj, expected, changes)
            lost = list(differences(expected, to_json(duplicate(rng, obj))))
            assert not lost, f"seed {seed}, {known.__name__}, after {[change.path for change in made]}: {lost}"


@pytest.fixture
def recipes(api_server):
    """Those of the kinds that the server takes."""
    refused = getattr(api_server, "refused", ())
    return [each for each in RECIPES if (each.cls.__resource__.group, each.cls.__resource__.plural) not in refused]


@pytest.fixture
def count(api_server):
    """How many objects make the trip: all on the engine, a part on the server that is held against it elsewhere too."""
    return TRIPS if isinstance(api_server, Engine) else max(1, TRIPS // 4)


@pytest.mark.slow
async def test_built_in_kinds(trips, gone_afterwards, recipes, count):
    """Each object goes round twice: through the whole type, and through one that knows a part of it."""
    table = [recipe for recipe in recipes for _ in range(recipe.weight)]

    async def trip(seed):
        rng = Random(seed)
        recipe = table[seed % len(table)]
        path = await trips.create(recipe.cls, recipe.where, rng, recipe.make(rng))
        if recipe.where == CLUSTER:
            gone_afterwards(recipe.cls, path)
        hand_made = THIN.get(recipe.cls)
        thin = hand_made if hand_made and rng.random() < 0.3 else Thinner(rng, share=rng.random()).thin(recipe.cls)
        for cls in (recipe.cls, thin):
            await trips.go(path, cls, recipe.where, rng, recipe.changes, shared=recipe.shared)

    await trips.run(count, trip)
    if len(table) <= count:
        assert len(trips.kinds) == len(recipes) >= 20
        assert min(trips.changes[name] for name in ("Set", "Items", "Anew")) > count / 20


@pytest.fixture
async def gadgets(client):
    """The custom kind, defined by hand on the server."""
    async with asyncio.timeout(60):
        # Its deletion takes a moment: a test that runs again may still find it.
        while await client.find(CUSTOM_RESOURCE_DEFINITION, DEFINITION["metadata"]["name"]):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    await client.create(Unstructured(DEFINITION))
    await _wait_until_established(client, DEFINITION["metadata"]["name"])
    await _wait_until_served(client, GENERATIONS[0])
    yield GROUP
    await client.delete(CUSTOM_RESOURCE_DEFINITION, DEFINITION["metadata"]["name"])


@pytest.mark.slow
async def test_a_custom_kind_of_which_the_server_knows_more(trips, gadgets, count):
    """Three programs of different age write to the same object in turn, and none loses what the others know."""

    async def trip(seed):
        rng = Random(seed)
        path = await trips.create(GENERATIONS[0], "namespaced", rng, gadget(rng))
        for cls in rng.sample(GENERATIONS, len(GENERATIONS)):
            await trips.go(path, cls, "namespaced", rng, CHANGES)

    await trips.run(max(1, count // 4), trip)
