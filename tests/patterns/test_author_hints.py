"""Mistakes that Python or the server reports in words of its own: conditions and errors add what to write instead."""

from __future__ import annotations

import contextlib
from typing import Any, cast

import pytest

from samples.postgres import Postgres
from samples.site import Site, SiteSpec
from steersman import (
    Context,
    Done,
    Manager,
    ObjectMeta,
    Outputs,
    Quantity,
    Request,
    Wait,
    generates,
    reconciles,
)
from steersman.kinds.apps_v1 import Deployment, DeploymentSpec
from steersman.kinds.core_v1 import (
    ConfigMap,
    Container,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PodSpec,
    PodTemplateSpec,
    VolumeResourceRequirements,
)
from steersman.patterns import DaemonRun, daemon
from steersman.testing import eventually


async def message_of(control_plane: Any, function: Any, *children: Any) -> str:
    """The message of Ready after a reconcile by this function; `steersman explain` and the log have it too."""
    manager = Manager(name="site-operator")
    manager.add(reconciles(Site, children=children)(function))
    client = control_plane.client
    async with control_plane.running(manager, crashes=True) as operator:
        await client.create(Site(metadata=ObjectMeta(name="home"), spec=SiteSpec(image="nginx")))
        wrong = {"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "Error"}]}}
        found = await eventually(client, Site, "home", has=wrong)
        (ready,) = found.status.conditions
        await eventually(lambda: any(ready.message in record.last_error for _, record in operator.runs))
        return ready.message


async def test_a_condition_suggests_the_field_that_was_meant(control_plane) -> None:
    """Python names the nearest field in a terminal alone, and for an assignment nowhere."""

    async def reads(site: Any, out: Outputs) -> Done:
        assert site.spec.imgae
        return Done()

    async def writes(site: Any, out: Outputs) -> Done:
        site.ensure_status().redy_replicas = 1
        return Done()

    assert (await message_of(control_plane, reads)).endswith("no attribute 'imgae'. Did you mean image?")
    await control_plane.client.delete(Site, "home")
    assert (await message_of(control_plane, writes)).endswith("'redy_replicas'. Did you mean ready_replicas?")


async def test_a_condition_names_a_missing_await(control_plane) -> None:
    """The person who reads the condition has no traceback."""

    async def function(site: Site, out: Outputs) -> Done:
        current: Any = out.current(out.apply(ConfigMap(metadata=ObjectMeta(name="page"))))
        with contextlib.closing(current):  # lest Python warns in another test
            assert current.data
        return Done()

    said = await message_of(control_plane, function, ConfigMap)
    assert said.endswith("The value comes from a call without await. Write await before the call.")


def deployment(selector: Any) -> Deployment:
    pod = PodSpec(containers=[Container(name="web", image="web:1")])
    template = PodTemplateSpec(metadata=ObjectMeta(labels={"app": "web"}), spec=pod)
    return Deployment(metadata=ObjectMeta(name="web"), spec=DeploymentSpec(selector=selector, template=template))


async def test_a_dict_in_the_place_of_a_struct_is_named(control_plane) -> None:
    """The server calls it an internal error: a field that its schema does not declare."""

    async def function(site: Site, out: Outputs) -> Done:
        out.apply(deployment({"app": "web"}))
        return Done()

    assert (await message_of(control_plane, function, Deployment)).endswith(
        "/web: spec.selector: it is a dict with 'app', which LabelSelector does not have; write"
        " LabelSelector(match_expressions=..., match_labels=...)"
    )


async def test_a_wrong_quantity_is_named(control_plane) -> None:
    """The server calls it an internal error, and names neither the field nor the value."""

    async def function(site: Site, out: Outputs) -> Done:
        resources = VolumeResourceRequirements(requests={"storage": Quantity("1GB")})
        spec = PersistentVolumeClaimSpec(access_modes=["ReadWriteOnce"], resources=resources)
        out.apply(PersistentVolumeClaim(metadata=ObjectMeta(name="data"), spec=spec))
        return Done()

    assert (await message_of(control_plane, function, PersistentVolumeClaim)).endswith(
        '/data: spec.resources.requests.storage: \'1GB\' is not a quantity; write one such as "500m", "2" or "1Gi"'
    )


async def test_the_key_of_a_wrong_value_is_named(control_plane) -> None:
    """A map has many keys."""

    async def function(site: Site, out: Outputs) -> Done:
        data = cast("Any", {"host": "web", "port": 8080})
        out.apply(ConfigMap(metadata=ObjectMeta(name="page"), data=data))
        return Done()

    assert "data['port']: Expected str, got int" in await message_of(control_plane, function, ConfigMap)


async def test_metadata_that_is_a_dict_is_named() -> None:
    """An attribute error would name no object."""

    @generates(Site, children=(ConfigMap,))
    def sites(site: Site) -> list[ConfigMap]:
        return [ConfigMap(metadata=cast("Any", {"name": "page"}))]

    home = Site(metadata=ObjectMeta(name="home", namespace="shop", uid="u"), spec=SiteSpec(image="nginx"))
    with pytest.raises(TypeError, match=r"its metadata is of type dict; write metadata=ObjectMeta\(name=\.\.\.\)"):
        await sites.declare(home)


async def test_a_read_of_an_unknown_attribute_lists_only_public_fields(control_plane) -> None:
    async def sites(site: Site, out: Outputs) -> Done:
        site.client  # type: ignore[attr-defined] # noqa: B018
        return Done()

    message = await message_of(control_plane, sites)
    assert message.endswith("Its fields are api_version, kind, metadata, spec, status")


async def test_an_await_too_many_is_answered_with_what_to_remove(control_plane) -> None:
    """``out.apply`` declares and sends nothing, so it is no coroutine."""

    async def sites(site: Site, out: Outputs) -> Done:
        await out.apply(ConfigMap(metadata=ObjectMeta(name="home")))  # type: ignore[misc]
        return Done()

    message = await message_of(control_plane, sites, ConfigMap)
    assert message.endswith("The call returns a ConfigMap at once. Remove await before the call.")


async def test_a_child_without_metadata_is_answered_with_what_to_write(control_plane) -> None:
    async def sites(site: Site, out: Outputs) -> Done:
        out.apply(ConfigMap(data={"a": "b"}))  # type: ignore[call-arg]
        return Done()

    message = await message_of(control_plane, sites, ConfigMap)
    assert message.endswith(
        'ConfigMap(...) needs metadata: the type has no default for it; write metadata=ObjectMeta(name="...")'
    )


def test_the_signature_of_the_bare_runtime_is_refused() -> None:
    """Otherwise the first use of ``ctx.client`` would report that a Site has no client."""
    with pytest.raises(
        TypeError,
        match=r"@reconciles\(Site\): f takes a Context, but gets a Site, read for it; .*\.controller\(Site\)\.run_with",
    ):

        @reconciles(cast("Any", Site))
        async def f(ctx: Context, request: Request) -> Done:
            return Done()


def test_a_daemon_without_a_kind_is_answered_with_what_to_write() -> None:
    with pytest.raises(TypeError) as error:

        @cast("Any", daemon)
        async def watch(run: DaemonRun[Site]) -> None: ...

    assert str(error.value) == "@daemon needs a kind: write @daemon(Site)"


def test_a_function_for_another_kind_is_refused() -> None:
    """It would run on objects that have other fields."""
    with pytest.raises(
        TypeError, match=r"@generates\(Site\): f takes a Postgres, but gets a Site; name one of the two"
    ):

        @generates(Site, children=(ConfigMap,))
        def f(site: Postgres) -> list[ConfigMap]:
            return []

    with pytest.raises(TypeError, match=r"@reconciles\(Site\): g takes a Postgres, but gets a Site"):

        @reconciles(cast("Any", Site))
        async def g(site: Postgres, out: Outputs) -> Done | Wait:
            return Done()
