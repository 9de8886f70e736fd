"""A controller with a new name takes over its conditions, its status fields and its finalizer."""

from __future__ import annotations

import pytest

from samples.postgres import GROUP, Postgres, PostgresStatus, managed, postgres, statuses
from samples.site import Site, SiteSpec, SiteStatus
from steersman import Manager, MergePatch, ObjectMeta
from steersman.controller import Done
from steersman.patterns import DaemonRun, Next, Outputs, Seen, StateMachine, daemon, finalizer, reports, state
from steersman.testing import eventually

OLD, NEW = f"{GROUP}/databases.postgres", f"{GROUP}/databases.clusters"


class First(StateMachine[Postgres]):
    """The release before the rename: two conditions, two status fields and a finalizer."""

    def __init__(self):
        self.cleaned = []

    @state(condition="Stored")
    async def store(self, pg: Postgres, out: Outputs) -> Next:
        pg.status = pg.status or PostgresStatus()
        pg.status.endpoint, pg.status.restored = "pg:5432", "yes"
        return Next()

    @state(condition="Backed")
    async def back_up(self, pg: Postgres, out: Outputs) -> Done:
        return Done()

    @finalizer
    async def clean_up(self, pg: Postgres, out: Outputs) -> Done:
        self.cleaned.append(pg.key.name)
        return Done()


class Same(First, name="clusters", formerly=("postgres",)):
    """The same under a new name."""


class Renamed(First, name="clusters"):
    """The release after that, which no longer lists the old name."""


class Second(StateMachine[Postgres], name="clusters", formerly=("postgres",)):
    """A release with a new name, a new condition, and one status field less."""

    @state(condition="Stored")
    async def store(self, pg: Postgres, out: Outputs) -> Next:
        pg.status = pg.status or PostgresStatus()
        pg.status.endpoint, pg.status.restored = "pg:5432", None
        return Next()

    @state(condition="Checked")
    async def check(self, pg: Postgres, out: Outputs) -> Done:
        return Done()

    @finalizer
    async def clean_up(self, pg: Postgres, out: Outputs) -> Done:
        return Done()


def owners(obj, start):
    """The field managers of an object that begin so."""
    return {each.manager for each in obj.metadata.managed_fields or () if each.manager.startswith(start)}


async def test_a_renamed_machine_takes_over_its_status_and_its_finalizer(plane):
    """Without it, conditions and fields of the old name stay on the object for ever."""
    client = plane.client
    async with plane.running(managed(First()), namespaces=[plane.namespace]) as operator:
        await client.create(postgres())
        await operator.drained()
    async with plane.running(managed(Second()), namespaces=[plane.namespace]) as operator:
        await operator.drained()
        pg = await client.get(Postgres, "pg")
        assert statuses(pg) == {"Ready": "True", "Stored": "True", "Checked": "True"}
        assert (pg.status.endpoint, pg.status.restored) == ("pg:5432", None)
        assert pg.metadata.finalizers == [NEW]
        assert owners(pg, "databases/") == {"databases/clusters"}


async def test_a_renamed_machine_takes_over_what_it_need_not_write(plane):
    """So ``formerly=`` can be removed once every object was reconciled, also if no status has changed since."""
    client = plane.client
    async with plane.running(managed(First()), namespaces=[plane.namespace]) as operator:
        await client.create(postgres())
        await operator.drained()
    stored = next(each for each in (await client.get(Postgres, "pg")).status.conditions if each.type == "Stored")
    async with plane.running(managed(Same()), namespaces=[plane.namespace]) as operator:
        await operator.drained()
        pg = await client.get(Postgres, "pg")
        assert owners(pg, "databases/") == {"databases/clusters"}
        assert next(each for each in pg.status.conditions if each.type == "Stored") == stored
    machine = Renamed()
    async with plane.running(managed(machine), namespaces=[plane.namespace]) as operator:
        with plane.writes() as writes:
            await operator.drained()
        assert writes.by("databases") == []
        await client.delete(Postgres, "pg")
        await eventually(client, Postgres, "pg", gone=True)
        assert machine.cleaned == ["pg"]


async def test_the_manager_and_the_machine_get_new_names_at_once(plane):
    client = plane.client
    async with plane.running(managed(First()), namespaces=[plane.namespace]) as operator:
        await client.create(postgres())
        await operator.drained()
    both = Manager(name="clusters-operator", formerly=("databases",))
    both.add(Second())
    async with plane.running(both, namespaces=[plane.namespace]) as operator:
        await operator.drained()
        pg = await client.get(Postgres, "pg")
        assert statuses(pg) == {"Ready": "True", "Stored": "True", "Checked": "True"}
        assert pg.status.restored is None
        assert pg.metadata.finalizers == [f"{GROUP}/clusters-operator.clusters"]
        assert owners(pg, "databases") == set()


async def test_a_renamed_manager_takes_over_a_status_that_it_need_not_write(plane):
    client = plane.client
    async with plane.running(managed(First()), namespaces=[plane.namespace]) as operator:
        await client.create(postgres())
        await operator.drained()
    renamed = Manager(name="clusters-operator", formerly=("databases",))
    renamed.add(First())
    async with plane.running(renamed, namespaces=[plane.namespace]) as operator:
        await operator.drained()
        assert owners(await client.get(Postgres, "pg"), "databases") == set()


async def test_both_releases_run_together(plane):
    """They come to rest while both declare the same; what the old one alone declares goes after its end."""
    client = plane.client
    spaces = {"namespaces": [plane.namespace]}
    async with plane.running(managed(First()), **spaces) as old:
        await client.create(postgres())
        await old.drained()
        async with plane.running(managed(Same()), **spaces) as new:
            await client.patch(Postgres, "pg", MergePatch({"spec": {"replicas": 2}}))
            await old.drained()
            await new.drained()
            with plane.writes() as writes:
                await client.patch(Postgres, "pg", MergePatch({"metadata": {"labels": {"look": "again"}}}))
                await old.drained()
                await new.drained()
            assert [each for each in writes.by("databases") if each.verb == "patch"] == []
            assert (await client.get(Postgres, "pg")).status.observed_generation == 2
    async with plane.running(managed(Second()), **spaces) as new:
        async with plane.running(managed(First()), **spaces):
            await client.patch(Postgres, "pg", MergePatch({"spec": {"replicas": 3}}))
            has = {"status": {"observedGeneration": 3}}
            await eventually(client, Postgres, "pg", lambda pg: "Checked" in statuses(pg), has=has)
        only = {"Ready": "True", "Stored": "True", "Checked": "True"}
        await eventually(client, Postgres, "pg", lambda pg: statuses(pg) == only, within=120)
        await new.drained()
        assert owners(await client.get(Postgres, "pg"), "databases/") == {"databases/clusters"}


async def test_a_renamed_report_removes_a_field_that_it_no_longer_sets(plane):
    def release(name, *formerly, **status):
        @reports(Site, name=name, formerly=formerly)
        def site_status(site: Site, seen: Seen) -> SiteStatus:
            return SiteStatus(**status)

        return managed(site_status)

    client = plane.client
    async with plane.running(release("count", ready_replicas=3, replicas=1), namespaces=[plane.namespace]) as operator:
        await client.create(Site(metadata=ObjectMeta(name="home"), spec=SiteSpec(image="web:1")))
        await operator.drained()
        assert (await client.get(Site, "home")).status.ready_replicas == 3
    async with plane.running(release("counter", "count", replicas=1), namespaces=[plane.namespace]) as operator:
        await operator.drained()
        site = await client.get(Site, "home")
        assert (site.status.ready_replicas, site.status.replicas) == (0, 1)
        assert owners(site, "databases/") == {"databases/counter"}


async def test_a_renamed_daemon_leaves_no_finalizer(plane):
    def release(name, *formerly):
        @daemon(Postgres, name=name, formerly=formerly)
        async def watch(run: DaemonRun[Postgres]) -> None:
            await run.changed()

        return managed(watch)

    client = plane.client
    async with plane.running(release("watch"), namespaces=[plane.namespace]) as operator:
        await client.create(postgres())
        await operator.drained()
    async with plane.running(release("observer", "watch"), namespaces=[plane.namespace]) as operator:
        await operator.drained()
        assert (await client.get(Postgres, "pg")).metadata.finalizers == [f"{GROUP}/databases.observer"]
        await client.delete(Postgres, "pg")
        await eventually(client, Postgres, "pg", gone=True)


async def test_the_finalizer_of_a_release_without_the_managers_name_goes_too(plane):
    class Earlier(First, finalizer=f"{GROUP}/postgres"):
        """As earlier releases named the finalizer."""

    client = plane.client
    async with plane.running(managed(Earlier()), namespaces=[plane.namespace]) as operator:
        await client.create(postgres("stays"))
        await client.create(postgres("goes"))
        await operator.drained()
    await client.delete(Postgres, "goes")
    machine = Same()
    async with plane.running(managed(machine), namespaces=[plane.namespace]) as operator:
        await operator.drained()
        assert (await client.get(Postgres, "stays")).metadata.finalizers == [NEW]
        await eventually(client, Postgres, "goes", gone=True)
        assert machine.cleaned == ["goes"]


@pytest.mark.parametrize(
    ("formerly", "words"),
    [
        ("old", r'formerly="old" is one name; write formerly=\("old",\)'),
        (("new",), "'new' is not an earlier name of controller new; list the names that the controller had before"),
        (("",), "'' is not an earlier name of controller new"),
        ((5,), "5 is not an earlier name of controller new"),
        (None, "formerly=None: pass the earlier names"),
    ],
)
def test_names_that_cannot_be_earlier_ones_are_rejected(formerly, words):
    class Wrong(First, name="new", formerly=formerly):
        """Its names are checked when it is added."""

    with pytest.raises((TypeError, ValueError), match=words):
        managed(Wrong())
    with pytest.raises((TypeError, ValueError), match=words):

        @reports(Site, name="new", formerly=formerly)
        def site_status(site: Site, seen: Seen) -> SiteStatus: ...

    with pytest.raises((TypeError, ValueError), match=words):

        @daemon(Site, name="new", formerly=formerly)
        async def watch(run: DaemonRun[Site]) -> None: ...


@pytest.mark.parametrize("order", [1, -1])
def test_a_name_that_another_controller_still_has_is_rejected(order):
    """The two would take their conditions and finalizers from each other."""

    class Other(First, name="postgres", ready="OtherReady"):
        @state(condition="OtherStored")
        async def store(self, pg: Postgres, out: Outputs) -> Next: ...

        @state(condition="OtherBacked")
        async def back_up(self, pg: Postgres, out: Outputs) -> Done: ...

    words = 'controller clusters has formerly=\\("postgres",\\), but controller postgres of the same manager also reconciles'
    with pytest.raises(ValueError, match=words):
        managed(*[Same(), Other()][::order])
