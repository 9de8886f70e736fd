"""Mistakes in an operator that only a run can show: each is one sentence that says what to write."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from samples.site import Site, SiteSpec
from steersman import Context, Done, Manager, ObjectMeta, Outputs, Request, RequeueAfter, reconciles
from steersman.cache import KindOptions
from steersman.kinds.core_v1 import ConfigMap, Secret
from steersman.objects import Selector
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
    assert "page, checked before sending: data[...]: Expected str, got int; give ConfigMap a value" in text


async def test_the_status_of_a_new_object(control_plane, caplog) -> None:
    async def reconcile(ctx: Context, request: Request) -> Done:
        site: Any = await ctx.client.get(Site, request.key)
        site.status.ready = 3
        return Done()

    text = await mistaken(control_plane, reconcile, caplog)
    assert "Before this line, write: site.status = site.status or SiteStatus()" in text


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
