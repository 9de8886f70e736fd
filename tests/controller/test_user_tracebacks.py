"""What the log shows of a mistake in user code: the user's own frames."""

from __future__ import annotations

import asyncio
import logging

import pytest

from samples.site import Site, site
from steersman import Client, Done, Manager, ObjectMeta
from steersman.kinds.core_v1 import ConfigMap
from steersman.patterns import generates
from steersman.telemetry import user_frames


def mistaken(found):
    return found.spec.imgae


async def reconcile(ctx, request):
    mistaken(await ctx.client.get(Site, request.key))
    return Done()


@generates(Site, children=())
def generated(found):
    mistaken(found)
    return []


@pytest.mark.parametrize("shape", ["reconcile", "generated"])
async def test_the_traceback_of_a_mistake_begins_in_user_code(control_plane, caplog, shape):
    manager = Manager(name="mistaken")
    if shape == "reconcile":
        manager.controller(Site).run_with(reconcile)
    else:
        manager.add(generated)
    ran = asyncio.Event()
    async with control_plane.running(manager, crashes=True) as operator:
        operator.manager.on_reconcile(lambda *_: ran.set())
        await control_plane.client.create(site("home", control_plane.namespace))
        await asyncio.wait_for(ran.wait(), 60)
    (failed,) = {record.exc_info for record in caplog.records if record.levelno == logging.ERROR and record.exc_info}
    text = logging.Formatter().formatException(failed)
    assert [line.split(", in ")[1] for line in text.splitlines() if line.startswith("  File ")] == [shape, "mistaken"]


@generates(Site, children=(ConfigMap,))
def refused(found):
    return [ConfigMap(metadata=ObjectMeta(name="page", labels={"team": "no label value"}))]


async def test_an_answer_of_the_server_to_a_declared_child_has_no_traceback(control_plane, caplog):
    """No frame of it is the user's, and the line says what failed, on which object, and why."""
    manager = Manager(name="refused")
    manager.add(refused)
    ran = asyncio.Event()
    async with control_plane.running(manager) as operator:
        operator.manager.on_reconcile(lambda *_: ran.set())
        await control_plane.client.create(site("home", control_plane.namespace))
        await asyncio.wait_for(ran.wait(), 60)
    first = next(record for record in caplog.records if record.levelno == logging.ERROR)
    assert f"apply ConfigMap {control_plane.namespace}/page: " in first.getMessage()
    assert "no label value" in first.getMessage()
    assert first.exc_info is None


async def test_what_user_code_called_stays_whole(control_plane):
    """An error of the client shows the call and what it led to."""

    async def call(client: Client) -> None:
        await client.get(Site, 5)

    with pytest.raises(Exception) as raised:  # noqa: PT011 - whatever it is
        await call(control_plane.client)
    text = logging.Formatter().formatException(user_frames(raised.value))
    assert "in call" in text
    assert "steersman/client/" in text


def test_an_error_of_ours_alone_keeps_its_traceback():
    with pytest.raises(ValueError, match="ours") as raised:
        exec("raise ValueError('ours')", {"__name__": "steersman.somewhere"})
    error = raised.value
    error.__traceback__ = error.__traceback__.tb_next
    assert user_frames(error)[2] is error.__traceback__
