"""An object that our type cannot hold is an error of its own key, and of no other."""

import asyncio

import pytest

from steersman import MergePatch, ObjectMeta, Resource, Spec
from steersman.aio import Supervisor
from steersman.cache import Cache
from steersman.controller import Done, Request, controller_for
from steersman.errors import NotFound
from steersman.objects import IntOrString, Key


@pytest.fixture
async def tanks(install, crd_group):
    """A kind as the server has it, sizes being numbers or texts, and as an older program knows it."""

    class TankSpec(Spec):
        size: IntOrString

    class Tank(Resource[TankSpec, None], group=crd_group, version="v1"):
        """A tank."""

    class NumberedSpec(Spec):
        size: int

    class NumberedTank(Resource[NumberedSpec, None], group=crd_group, version="v1", kind="Tank", plural="tanks"):
        """A tank whose size is a number."""

    await install(Tank)
    return Tank, TankSpec, NumberedTank


async def until(condition):
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - no event to wait for
            await asyncio.sleep(0.01)


async def test_an_object_that_our_type_cannot_hold_is_an_error_of_its_key_alone(client, namespace, tanks):
    """Seen by the reconciler of its key, and healed when the object is; a mapper that read it loses nothing either."""
    tank, spec, numbered = tanks
    sizes: dict[str, int] = {}
    mapped: dict[str, int] = {}

    async def reconcile(ctx, request):
        try:
            sizes[request.key.name] = (await ctx.client.get(numbered, request.key)).spec.size
        except NotFound:
            mapped[request.key.name] = mapped.get(request.key.name, 0) + 1
        return Done()

    def of_that_size(view):
        return [Key(namespace, f"size-{view.object.spec.size}")]

    for name, size in (("bad", "large"), ("good", 7)):
        await client.create(tank(metadata=ObjectMeta(name=name, namespace=namespace), spec=spec(size=size)))
    plan = controller_for(numbered).watches(numbered, map=of_that_size).run_with(reconcile)
    bad = Request(Key(namespace, "bad"))
    async with Cache(client) as cache, Supervisor() as tasks:
        made = plan.assemble(cache)
        tasks.start(made.run(), name="controller")
        await until(lambda: made.explain(bad) is not None and sizes and mapped)
        record = made.explain(bad)
        assert record.result == "error"
        assert "DecodeError" in record.last_error
        assert "size" in record.last_error
        assert (sizes, list(mapped)) == ({"good": 7}, ["size-7"])
        by_size = made.statistics().sources[1]
        assert by_size.kind == cache.statistics()[0].kind
        assert (by_size.retrying, "DecodeError" in by_size.last_failure) == (1, True)

        await client.patch(tank, bad.key, MergePatch({"spec": {"size": 9}}))
        await until(lambda: "bad" in sizes and "size-9" in mapped)
        assert sizes == {"good": 7, "bad": 9}
        assert made.statistics().sources[1].retrying == 0
        made.stop()
