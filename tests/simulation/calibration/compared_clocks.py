"""An external object is created twice, because two clocks are compared."""

from __future__ import annotations

import asyncio

from simulation.calibration.defect import Defect
from simulation.calibration.mutation import Mutation
from simulation.gallery.sites import Site, create

from steersman import Done, Manager, Outputs, StateMachine, Wait, finalizer, state
from steersman.patterns import Absent, External, ExternalKey, Present
from steersman.simulation import ExternalSystem, ScenarioUser
from steersman.simulation.runs.faults import ClockSkew, CrashCommitted

CLOUD = ExternalSystem("cloud")
#: Seconds until the cloud lists a new bucket.
LISTED_AFTER = 1.5


class Buckets:
    """The buckets of a cloud, by the names of their Sites."""

    async def find(self, key: ExternalKey, site: Site) -> str | None:
        name = site.key.name
        return await CLOUD.call("find", name, lambda: name if {"site": name} in CLOUD.objects.values() else None)

    async def create(self, key: ExternalKey, site: Site) -> str:
        name = site.key.name
        later = asyncio.get_running_loop().call_later
        await CLOUD.call("create", name, lambda: later(LISTED_AFTER, CLOUD.add, {"site": name}))
        return name

    async def delete(self, key: ExternalKey, site: Site, found: str) -> None:
        def forget() -> None:
            for id_, bucket in list(CLOUD.objects.items()):
                if bucket == {"site": found}:
                    del CLOUD.objects[id_]

        await CLOUD.call("delete", found, forget)


def setup() -> Manager:
    class Storage(StateMachine[Site]):
        def __init__(self) -> None:
            self.buckets = External(Buckets(), name="bucket", timeout=4.0, late=5.0)

        @state(condition="BucketReady")
        async def bucket(self, site: Site, _: Outputs) -> Done | Wait:
            """Ensure the bucket."""
            answer = self.buckets.ensure(site)
            return Done() if isinstance(answer, Present) else answer.wait

        @finalizer
        async def removed(self, site: Site, _: Outputs) -> Done | Wait:
            """Remove the bucket."""
            answer = self.buckets.remove(site)
            return Done() if isinstance(answer, Absent) else answer.wait

    manager = Manager(name="calibration")
    manager.add(Storage())
    return manager


async def site_with_bucket(user: ScenarioUser) -> None:
    """A Site is created, and has its bucket."""
    await user.sleep(5)
    await create(user)
    await user.sleep(30)
    await user.settled()


DEFECT = Defect(
    was="With a clock behind the server's, an object for which an earlier process had sent a request looked new.",
    fixed_in="c75a3849",
    mutations=(
        Mutation(
            "steersman.patterns.external.state:ExternalState.__init__",
            "self._start = start",
            "self._start = start\n    from steersman import utc_now\n    self._wall = utc_now()",
        ),
        Mutation(
            "steersman.patterns.external.state:ExternalState._entry",
            "until = NEVER if by.created else",
            "until = NEVER if obj.metadata.creation_timestamp > self._wall else",
        ),
    ),
    setup=setup,
    workload=site_with_bucket,
    faults=(CrashCommitted(), ClockSkew(seconds=-120.0)),
    pairs=20,
    oracle="state",
    words="cloud 2 is left behind",
)
