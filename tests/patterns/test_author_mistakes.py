"""Mistakes in an operator that only a run can show: each is one sentence that says what to write."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from samples.site import Site, SiteSpec
from steersman import (
    Condition,
    Context,
    Done,
    Manager,
    ObjectMeta,
    Outputs,
    Request,
    RequeueAfter,
    Resource,
    Spec,
    Status,
    Struct,
    generates,
    reconciles,
    set_condition,
    utc_now,
)
from steersman.cache import KindOptions
from steersman.kinds.core_v1 import ConfigMap, Secret
from steersman.kinds.events_v1 import Event
from steersman.objects import Selector
from steersman.patterns import External, ExternalKey, StateMachine, Wait, finalizer, state
from steersman.testing import eventually

LABELS = {"app.kubernetes.io/managed-by": "site-operator"}


def secrets(**labels: Any) -> Manager:
    @reconciles(Site, children=(Secret,))
    async def site(site: Site, out: Outputs) -> Done:
        out.apply(Secret(metadata=ObjectMeta(name="key", labels=labels), string_data={"key": "hush"}))
        return Done()

    manager = Manager(name="site-operator", kinds={Secret: KindOptions(labels=Selector.of(LABELS))})
    manager.add(site)
    return manager


async def home(plane: Any) -> None:
    await plane.install(Site)
    await plane.client.create(Site(metadata=ObjectMeta(name="home"), spec=SiteSpec(image="nginx")))


def ready(status: str, reason: str) -> dict[str, Any]:
    return {"status": {"conditions": [{"type": "Ready", "status": status, "reason": reason}]}}


async def test_a_child_that_the_cache_leaves_out_is_not_made(plane) -> None:
    """Its deletion would never be noticed, so it would never be restored."""
    await home(plane)
    async with plane.running(secrets()):
        site = await eventually(plane.client, Site, "home", has=ready("False", "OutsideCache"))
        message = site.status.conditions[0].message
        assert "lacks the labels app.kubernetes.io/managed-by=site-operator" in message
        assert "add the labels to the child, or change Manager(kinds={Secret: ...})" in message
        assert await plane.client.find(Secret, "key") is None
    async with plane.running(secrets(**LABELS)):
        await eventually(plane.client, Site, "home", has=ready("True", "Ready"))
        await plane.client.delete(Secret, "key")
        await eventually(plane.client, Secret, "key")


async def mistaken(plane: Any, reconcile: Any, caplog: pytest.LogCaptureFixture) -> str:
    manager = Manager(name="site-operator")
    manager.controller(Site).run_with(reconcile)
    await home(plane)
    async with plane.running(manager, crashes=True):
        with caplog.at_level(logging.WARNING):
            await eventually(lambda: bool(caplog.records))
    return "\n".join(logging.Formatter().format(each) for each in caplog.records)


async def test_a_value_of_the_wrong_type_is_found_before_it_is_sent(control_plane, caplog) -> None:
    """The server answers 500 to an apply with a number where a text belongs."""

    async def reconcile(ctx: Context, request: Request) -> Done:
        at = request.key.namespace
        data: Any = {"port": 80}
        await ctx.client.apply(ConfigMap(metadata=ObjectMeta(name="page", namespace=at), data=data))
        return Done()

    with control_plane.writes() as writes:
        text = await mistaken(control_plane, reconcile, caplog)
        assert [each for each in writes if "page" in str(each)] == []
    assert "page, checked before sending: data['port']: Expected str, got int; give ConfigMap a value" in text


async def test_the_status_of_a_new_object(control_plane, caplog) -> None:
    async def reconcile(ctx: Context, request: Request) -> Done:
        site: Any = await ctx.client.get(Site, request.key)
        site.status.ready = 3
        return Done()

    text = await mistaken(control_plane, reconcile, caplog)
    assert "Write site.ensure_status() instead of site.status, or set the status" in text


async def test_a_reconcile_without_return(control_plane, caplog) -> None:
    async def reconcile(ctx: Context, request: Request) -> Any:
        await ctx.client.find(Site, request.key)

    text = await mistaken(control_plane, reconcile, caplog)
    assert "reconcile returned None: on this path it ends without return; return Done()" in text


async def test_an_event_of_a_type_that_does_not_exist(control_plane, caplog) -> None:
    async def reconcile(ctx: Context, request: Request) -> Done:
        kind: Any = "Info"
        ctx.events.record(await ctx.client.get(Site, request.key), kind, "Made", "Making", "a page")
        return Done()

    text = await mistaken(control_plane, reconcile, caplog)
    assert 'its type must be "Normal" or "Warning" (got \'Info\'); write record(obj, "Normal"' in text
    assert "Traceback" not in text


async def test_requeues_without_a_pause_are_a_hot_loop(control_plane, caplog) -> None:
    """They take a whole core, and nothing says so."""
    runs: list[None] = []

    async def reconcile(ctx: Context, request: Request) -> RequeueAfter:
        runs.append(None)
        return RequeueAfter(0)

    text = await mistaken(control_plane, reconcile, caplog)
    assert "runs hot and is throttled: every reconcile returns RequeueAfter with less than 0.05 s, 100 in a row" in text
    assert len(runs) < 110


class Buckets:
    """An API that rejects every call."""

    async def find(self, key: ExternalKey, site: Site) -> str | None:
        raise PermissionError("the token has expired")

    async def create(self, key: ExternalKey, site: Site) -> str:
        return "bucket"

    async def delete(self, key: ExternalKey, site: Site, bucket: str) -> None:
        """Delete the bucket."""


class Renamed(Buckets):
    async def create(self, key: ExternalKey, site: Site, session: object) -> str:  # pyright: ignore[reportIncompatibleMethodOverride]
        return "bucket"


class Compared(Buckets):
    def up_to_date(self, found: str) -> bool:
        return True


@pytest.mark.parametrize(
    ("api", "said"),
    [
        (Renamed, r"Renamed.create cannot be called with \(key, obj\); write async def create\(self, key, obj\)"),
        (
            Compared,
            r"Compared.up_to_date cannot be called with \(obj, found\); write def up_to_date\(self, obj, found\)",
        ),
    ],
)
def test_a_method_with_other_parameters(api: Any, said: str) -> None:
    """Found where the External is written, not by the first call."""
    with pytest.raises(TypeError, match=rf"External\(name='bucket'\): {said}"):
        External(api(), name="bucket")


class Hasty(StateMachine[Site]):
    """Uses the answer of an External in the wrong way."""

    awaits = False

    def __init__(self) -> None:
        self.buckets: Any = External(Buckets(), name="bucket")

    @state(condition="BucketReady")
    async def bucket(self, site: Site, out: Outputs) -> Done | Wait:
        return await self.buckets.ensure(site) if self.awaits else self.buckets.ensure(site)

    @finalizer
    async def clean_up(self, site: Site, out: Outputs) -> Done | Wait:
        return Done()


@pytest.mark.parametrize(
    ("awaits", "said"),
    [
        (True, "an External answers at once, with Working here; remove await, and match its answer"),
        (
            False,
            "the answer of an External; match it: return Done() for Present(found) or Absent(), and pending.wait otherwise",
        ),
    ],
)
async def test_an_answer_is_no_step(control_plane, monkeypatch, caplog, awaits, said) -> None:
    """A state matches the answer; the first error says how."""
    monkeypatch.setattr(Hasty, "awaits", awaits)
    manager = Manager(name="site-operator")
    manager.add(Hasty())
    await home(control_plane)
    async with control_plane.running(manager, crashes=True):
        await eventually(lambda: said in caplog.text)


class Patient(Hasty):
    """Uses it as the page says."""

    @state(condition="BucketReady")
    async def bucket(self, site: Site, out: Outputs) -> Done | Wait:
        return self.buckets.ensure(site).wait


async def test_a_failing_service_is_a_warning(control_plane) -> None:
    """`kubectl get events --field-selector type=Warning` shows it."""
    manager = Manager(name="site-operator")
    manager.add(Patient())
    await home(control_plane)
    client = control_plane.client
    async with control_plane.running(manager):
        await eventually(client, Site, "home", has=ready("False", "ExternalError"))

        async def warned() -> bool:
            events = [(each.type, each.reason) for each in await client.list(Event)]
            return ("Warning", "ExternalError") in events

        await eventually(warned)


async def test_a_dict_is_no_child(control_plane, caplog) -> None:
    """kopf's operators build dicts."""

    @reconciles(Site, children=(ConfigMap,))
    async def site(site: Site, out: Outputs) -> Done:
        child: Any = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "page"}}
        out.apply(child)
        return Done()

    manager = Manager(name="site-operator")
    manager.add(site)
    await home(control_plane)
    async with control_plane.running(manager, crashes=True):
        wrong = await eventually(control_plane.client, Site, "home", has=ready("False", "Error"))
    assert (
        "out.apply(ConfigMap): that is a dict; build a ConfigMap of steersman.kinds or of your own types, or pass"
        " Unstructured(...)"
    ) in wrong.status.conditions[0].message


async def test_a_dict_in_a_list_is_no_child() -> None:
    """The same for a function that returns its children."""

    @generates(Site, children=(ConfigMap,))
    def site(site: Site) -> list[Any]:
        return [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "page"}}]

    with pytest.raises(
        TypeError, match=r"build one of steersman.kinds or of your own types, or Unstructured\(\{...\}\)"
    ):
        await site.declare(Site(metadata=ObjectMeta(name="home"), spec=SiteSpec(image="nginx")))


class CountedStatus(Status):
    pages: int = 0


class Counted(Resource[Spec, CountedStatus], group="mistakes.test.steersman.dev", version="v1"):
    """A kind whose status counts."""


async def test_a_status_with_a_value_of_the_wrong_type(control_plane) -> None:
    """The condition names the object, the field and what to write."""

    @reconciles(Counted, children=())
    async def counted(counted: Counted, out: Outputs) -> Done:
        pages: Any = "three"
        counted.status = CountedStatus(pages=pages)
        return Done()

    manager = Manager(name="counted-operator")
    manager.add(counted)
    async with control_plane.running(manager, crashes=True):
        await control_plane.client.create(Counted(metadata=ObjectMeta(name="c"), spec=Spec()))
        wrong = await eventually(control_plane.client, Counted, "c", has=ready("False", "Error"))
    assert wrong.status.conditions[0].message == (
        f"TypeError: Counted {control_plane.namespace}/c: status.pages: Expected int, got str; set status.pages to a value of"
        " its type"
    )


class BareStatus(Struct):
    pages: int = 0


class Bare(Resource[Spec, BareStatus], group="mistakes.test.steersman.dev", version="v1"):
    """A kind whose status has no conditions."""


class Mute(Resource[Spec, None], group="mistakes.test.steersman.dev", version="v1"):
    """A kind without a status."""


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (Bare, "Bare: BareStatus has no conditions, so Steersman reports readiness only in events"),
        (Mute, "to see it in the status, write class Mute(Resource[..., Status], ...)"),
    ],
)
async def test_a_kind_without_conditions_is_named_once(control_plane, caplog, kind, said) -> None:
    """Otherwise `Ready` is missing without a word."""

    @generates(kind, children=(ConfigMap,))
    def page(obj: Any) -> list[ConfigMap]:
        return [ConfigMap(metadata=ObjectMeta(name=obj.key.name))]

    manager = Manager(name="page-operator")
    manager.add(page)
    async with control_plane.running(manager) as operator:
        for name in ("a", "b"):
            await control_plane.client.create(kind(metadata=ObjectMeta(name=name), spec=Spec()))
        await operator.drained()
    assert caplog.text.count(said) == 1


async def test_a_condition_that_the_machine_sets_itself(control_plane, caplog) -> None:
    """What a state sets there is overwritten: the log says what to return."""

    @reconciles(Counted, children=())
    async def counted(counted: Counted, out: Outputs) -> Done:
        counted.status = counted.status or CountedStatus()
        name = "Ready" if counted.key.name == "wrong" else "Counted"
        set_condition(counted.status, Condition(type=name, status="False", reason="Mine"), now=utc_now())
        return Done()

    manager = Manager(name="counted-operator")
    manager.add(counted)
    async with control_plane.running(manager) as operator:
        for name in ("wrong", "right"):
            await control_plane.client.create(Counted(metadata=ObjectMeta(name=name), spec=Spec()))
        await operator.drained()
        right = await control_plane.client.get(Counted, "right")
    assert {each.type for each in right.status.conditions} == {"Ready", "Counted"}
    said = "a state set condition Ready, which Steersman sets from what the states return; return Wait(message, reason=...)"
    assert f"{control_plane.namespace}/wrong: {said}" in caplog.text
    assert f"{control_plane.namespace}/right" not in caplog.text
