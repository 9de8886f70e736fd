"""Names of finalizers that no server accepts."""

from __future__ import annotations

import types
from typing import Any

import pytest

from samples.site import Site
from steersman import Done, ObjectMeta, StateMachine, generates, state
from steersman.errors import Invalid
from steersman.kinds.core_v1 import ConfigMap
from steersman.patterns import DaemonRun, add_finalizer, daemon


@pytest.mark.parametrize(
    "name", ["example.com/clean up", "example.com/", "/clean-up", "a/b/c", f"example.com/{'a' * 64}", 3]
)
def test_a_finalizer_that_no_server_accepts_is_refused(name: Any) -> None:
    """Its first object would show it, as an error of the server."""

    async def made(self: Any, obj: Any, out: Any) -> Done:
        return Done()

    methods = {"made": state(condition="Made")(made)}
    machine = types.new_class("M", (StateMachine[Site],), {"finalizer": name}, lambda space: space.update(methods))
    with pytest.raises(TypeError, match="is not the name of a finalizer; write a domain of yours"):
        machine().blueprint()
    with pytest.raises(TypeError, match=r"@generates\(Site\): finalizer=.* is not the name of a finalizer"):
        generates(Site, children=(ConfigMap,), finalizer=name)(lambda site: [])
    with pytest.raises(TypeError, match=r"@daemon\(Site\): finalizer=.* is not the name of a finalizer"):

        @daemon(Site, finalizer=name)
        async def watch(run: DaemonRun[Site]) -> None: ...


async def test_a_rejected_finalizer_is_not_taken_for_a_deletion(control_plane) -> None:
    """The reconcile would be retried forever as a conflict, for an object that is not being deleted."""
    page = await control_plane.client.create(ConfigMap(metadata=ObjectMeta(name="page")))
    with pytest.raises(Invalid, match="clean up"):
        await add_finalizer(control_plane.client, page, "example.com/clean up")
