"""No request if nothing changed, and never a request left out that was needed: on the real API server."""

import copy
import random  # noqa: TID251 - seeded

import msgspec
import pytest

from samples import intents
from samples.site import Site
from steersman import MergePatch
from steersman.cache import Cache
from steersman.client import Intent
from steersman.controller.writes.applies import Applies
from steersman.errors import BadRequest, InternalError, Invalid, NotFound
from steersman.objects import Key, Kind, Unstructured

pytestmark = pytest.mark.both_servers("compares an intent with what the server made of it")


def plain(tree):
    """An object without the traces of a write, and without what others own.

    A value that the server stores otherwise, such as an empty list, makes it write down the time of the apply, and for some
    kinds a generation, again and again; it takes the field from others who own it too, without any other change.
    """
    tree = copy.deepcopy(tree)
    for name in ("resourceVersion", "generation"):
        tree["metadata"].pop(name, None)
    entries = tree["metadata"].pop("managedFields", ())
    ours = [entry for entry in entries if (entry["manager"], entry["operation"]) == ("tests", "Apply")]
    return tree, [(entry.get("subresource"), entry["apiVersion"], entry["fieldsV1"]) for entry in ours]


class World:
    """Objects of one kind in one namespace, every change of which is in the cache at once."""

    def __init__(self, cache, client, another, kind, namespace):
        self.cache, self.client, self.another = cache, client, another
        self.kind, self.api_version, self.namespace = kind, intents.POOLS[kind][0], namespace
        self.informer = cache.informer(Kind(self.api_version, kind))
        self.forget()

    def forget(self):
        """As after a restart."""
        self.applies = Applies(lambda kind: self.informer)

    def intent(self, tree, subresource=""):
        key = Key(self.namespace, tree["metadata"]["name"])
        declared = Site if self.kind == "Site" else None
        kind = Kind(self.api_version, self.kind).gvk()
        return Intent(kind, key, msgspec.json.encode(tree), "tests", subresource, declared)

    async def get(self, name):
        try:
            return (await self.client.get(Kind(self.api_version, self.kind), (self.namespace, name))).tree
        except NotFound:
            return None

    async def apply(self, tree, subresource=""):
        """Ask whether it must be sent, send it all the same, and compare; what was said, and what was true."""
        intent = self.intent(tree, subresource)
        left_out = self.applies.unchanged(intent) is not None
        before = await self.get(intent.key.name)
        answer = await self.client.apply(Unstructured(tree), force=True, subresource=subresource)
        self.cache.record_write(answer)
        unchanged = before is not None and plain(before) == plain(answer.tree)
        assert unchanged or not left_out, f"left out, and needed: {tree} on {before} became {answer.tree}"
        if not left_out:
            self.applies.applied(intent, answer)
        return left_out, unchanged

    async def drift(self, chance, name):
        """Another writer changes, removes or takes over a few fields; sometimes it is we, by other means."""
        if chance.random() < 0.25:
            tree = intents.intent(self.kind, intents.picks(chance, self.kind), self.namespace, name)
            answer = await self.another.apply(Unstructured(tree), force=True)
        else:
            by = self.client if chance.random() < 0.3 else self.another
            patch = MergePatch(intents.drift(chance, self.kind))
            answer = await by.patch(Kind(self.api_version, self.kind), (self.namespace, name), patch)
        self.cache.record_write(answer)


@pytest.fixture
async def another(api_server):
    async with api_server.client(field_manager="another") as client:
        yield client


@pytest.fixture
async def world(client, another, namespace, sites):
    async with Cache(client) as cache:

        async def of(kind):
            made = World(cache, client, another, kind, namespace)
            await made.informer.wait_synced()
            return made

        yield of


@pytest.mark.parametrize("kind", list(intents.POOLS))
async def test_what_is_left_out_would_have_changed_nothing(world, kind):
    """Random intents over random drifts, with and without a memory: whatever is not sent would have changed nothing."""
    chance = random.Random(f"apply {kind}")
    here = await world(kind)
    counts = {(left_out, unchanged): 0 for left_out in (True, False) for unchanged in (True, False)}
    for number in range(12):
        chosen = intents.picks(chance, kind)
        for _ in range(10):
            for path in chance.sample(sorted(chosen), k=chance.choice([0, 0, 0, 1, 2])):
                chosen[path] = chance.choice(intents.pool(kind)[path])
            try:
                counts[await here.apply(intents.intent(kind, chosen, here.namespace, f"case-{number}"))] += 1
                if chance.random() < 0.5:
                    await here.drift(chance, f"case-{number}")
            except (BadRequest, Invalid, InternalError):
                pass  # not every combination is a valid object
            if chance.random() < 0.3:
                here.forget()
    assert counts[True, True] > 20
