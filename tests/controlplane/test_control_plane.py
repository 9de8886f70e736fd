"""A control plane as its users see it: how it begins and ends, what it waits for, who its controllers are."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import pytest
import yaml
from controlplane.families import GARBAGE, config_map, family, names

from samples.virtual_time import run_virtual
from steersman import Client, Key, Kind, Unstructured
from steersman.apiserver import MemoryStorage
from steersman.client import MergePatch
from steersman.controlplane import ControlPlane
from steersman.errors import Forbidden, NotFound
from steersman.kinds.core_v1 import ConfigMap, Container, Namespace, Pod, PodSpec, ServiceAccount
from steersman.objects import ObjectMeta
from steersman.testing.engine.environment import Environment
from steersman.testing.engine.existing_cluster import find_kubectl
from steersman.testing.engine.kubectl import run_kubectl

# beginning and ending


async def test_it_is_ready_when_it_begins_and_leaves_nothing_when_it_ends():
    before = asyncio.all_tasks()
    async with ControlPlane() as plane:
        accounts = [str(each.key) for each in await plane.client.list(ServiceAccount)]
        assert accounts == [f"{name}/default" for name in ("default", "kube-node-lease", "kube-public", "kube-system")]
        assert (plane.url, plane.kubeconfig) == (None, None)
        with pytest.raises(RuntimeError, match="is already running"):
            await plane.__aenter__()
    assert asyncio.all_tasks() == before
    with pytest.raises(RuntimeError, match="within its 'async with'"):
        _ = plane.client
    with pytest.raises(RuntimeError, match="within its 'async with'"):
        await plane.settled()


async def test_it_ends_while_its_controllers_work():
    before = asyncio.all_tasks()
    async with ControlPlane() as plane:
        owner = await plane.client.create(config_map("owner"))
        for number in range(50):
            await plane.client.create(config_map(f"child-{number}", owner))
        await plane.client.delete(ConfigMap, "owner")
    assert asyncio.all_tasks() == before


async def test_a_control_plane_that_cannot_begin_says_why_and_leaves_nothing(tmp_path):
    before = asyncio.all_tasks()
    (tmp_path / "config").write_text("mine")
    with pytest.raises(ValueError, match="not a kubeconfig of this server"):
        async with ControlPlane(port=0, kubeconfig=tmp_path / "config"):
            pass
    assert asyncio.all_tasks() == before


def test_options_that_cannot_be_meant_are_refused():
    with pytest.raises(ValueError, match="pass port=0"):
        ControlPlane(kubeconfig="config")
    with pytest.raises(ValueError, match="did you mean namespace-controller"):
        ControlPlane(controllers=["namespaces-controller"])
    with pytest.raises(TypeError, match="write controllers=\\["):
        ControlPlane(controllers=GARBAGE)


async def test_controllers_can_be_left_out():
    async with ControlPlane(controllers=[GARBAGE]) as plane:
        assert plane.controllers == (GARBAGE,)
        assert list(await plane.client.list(ServiceAccount)) == []
        owner, _ = await family(plane.client)
        await plane.client.delete(ConfigMap, owner.key)
        await plane.client.create(Namespace(metadata=ObjectMeta(name="shop")))
        await plane.client.delete(Namespace, "shop")
        await plane.settled()
        assert await names(plane.client) == []
        assert (await plane.client.get(Namespace, "shop")).metadata.deletion_timestamp is not None


async def test_a_pod_in_a_new_namespace_gets_its_account():
    """A Pod that comes at once waits for the controller that creates the account."""
    pod = Pod(metadata=ObjectMeta(name="a", namespace="new"), spec=PodSpec(containers=[Container(name="a", image="a")]))
    async with ControlPlane(enable_admission_plugins=["ServiceAccount"]) as plane:
        await plane.client.create(Namespace(metadata=ObjectMeta(name="new")))
        made = (await plane.client.create(pod)).spec
    assert made.service_account_name == "default"
    assert [volume.name for volume in made.volumes] == [mount.name for mount in made.containers[0].volume_mounts]


async def test_a_server_of_few_kinds_has_the_controllers_that_make_sense_there():
    async with ControlPlane(kinds=["apps/v1"]) as plane:
        await plane.settled()
    async with ControlPlane(kinds=["v1"], resources=[]) as plane:
        owner, _ = await family(plane.client)
        await plane.client.delete(ConfigMap, owner.key, propagation="Foreground")
        await plane.settled()
        assert await names(plane.client) == []


# waiting


async def test_what_follows_from_a_write_has_happened_when_it_has_settled():
    async with ControlPlane() as plane:
        client = plane.client
        await client.create(Namespace(metadata=ObjectMeta(name="shop")))
        parent = await client.create(config_map("0", namespace="shop"))
        first = parent
        for number in range(1, 10):
            parent = await client.create(config_map(str(number), parent, namespace="shop"))
        await client.delete(ConfigMap, first.key, propagation="Foreground")
        await plane.settled()
        assert await names(client, "shop") == []
        await client.delete(Namespace, "shop")
        await plane.settled()
        with pytest.raises(NotFound):
            await client.get(Namespace, "shop")


async def test_settled_does_not_wait_for_foreign_finalizers():
    async with ControlPlane() as plane, asyncio.timeout(60):
        client = plane.client
        owner = await client.create(config_map("owner"))
        await client.create(config_map("child", owner, finalizers=["example.com/hold"]))
        await client.delete(ConfigMap, owner.key, propagation="Foreground")
        await plane.settled()
        assert await names(client) == ["child"]
        await client.patch(ConfigMap, "default/child", MergePatch({"metadata": {"finalizers": None}}))
        await plane.settled()
        assert await names(client) == []


def test_an_idle_control_plane_does_nothing():
    asked: list[str] = []

    async def idle() -> None:
        async with ControlPlane(audit=lambda event: asked.append(event["requestURI"])) as plane:
            await plane.settled()
            asked.clear()
            await asyncio.sleep(3600)

    _, seconds = run_virtual(idle())
    assert seconds >= 3600
    assert asked == []


# on a port


async def test_on_a_port_it_is_served_and_its_authority_is_published(tmp_path):
    async with ControlPlane(port=0, folder=tmp_path / "data") as plane:
        assert plane.url is not None
        assert plane.kubeconfig == tmp_path / "data" / "kubeconfig"
        config: dict[str, Any] = yaml.safe_load(plane.kubeconfig.read_bytes())
        authority = base64.b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"]).decode()
        async with Client.connect(kubeconfig=plane.kubeconfig) as client:
            published = await client.get(ConfigMap, "kube-system/kube-root-ca.crt")
            assert published.data == {"ca.crt": authority}
            # a change or a deletion is reverted
            await client.patch(ConfigMap, published.key, MergePatch({"data": {"ca.crt": "mine", "other": "x"}}))
            await client.delete(ConfigMap, "default/kube-root-ca.crt")
            await client.create(Namespace(metadata=ObjectMeta(name="shop")))
            await plane.settled()
            for namespace in ("default", "kube-system", "shop"):
                assert (await client.get(ConfigMap, (namespace, "kube-root-ca.crt"))).data == {"ca.crt": authority}
            await client.delete(Namespace, "shop")
            await plane.settled()
            assert await client.find(Namespace, "shop") is None


async def test_kubectl_deletes_in_three_ways(tmp_path):
    left = {"background": [], "foreground": [], "orphan": ["shelf"]}
    async with ControlPlane(port=0, folder=tmp_path / "data") as plane:
        assert plane.kubeconfig is not None
        program = find_kubectl(Environment.read())
        for policy, expected in left.items():
            await plane.client.create(config_map("shop"))
            shop = await plane.client.get(ConfigMap, "shop")
            await plane.client.create(config_map("shelf", shop))
            delete = ("delete", "configmap", "shop", f"--cascade={policy}", "--timeout=20s")
            told = await run_kubectl(program, delete, kubeconfig=plane.kubeconfig)
            assert told == 'configmap "shop" deleted from default namespace\n'
            await plane.settled()
            assert await names(plane.client) == expected


# who does what


async def test_controllers_act_in_their_own_names_and_need_no_role():
    users: set[str] = set()

    def remember(event: dict[str, Any]) -> None:
        if event["verb"] in {"create", "update", "patch", "delete", "deletecollection"}:
            users.add(event["user"]["username"])

    async with ControlPlane(authorizer="rbac", audit=remember) as plane:
        client = plane.client
        await client.create(Namespace(metadata=ObjectMeta(name="shop")))
        owner, _ = await family(client)
        await client.delete(ConfigMap, owner.key)
        await client.delete(Namespace, "shop")
        await plane.settled()
        assert await names(client) == []
        async with Client(plane.transport("kim")) as kim:
            with pytest.raises(Forbidden, match="kim"):
                await kim.delete(ConfigMap, "owner")
    accounts = ("generic-garbage-collector", "namespace-controller", "service-account-controller")
    expected = {f"system:serviceaccount:kube-system:{each}" for each in accounts}
    assert {user for user in users if user.startswith("system:serviceaccount")} == expected


async def test_writes_of_controllers_are_known_as_those_of_kube_controller_manager():
    async with ControlPlane() as plane:
        await plane.client.create(Namespace(metadata=ObjectMeta(name="shop")))
        await plane.client.create(config_map("held", namespace="shop", finalizers=["example.com/hold"]))
        await plane.client.delete(Namespace, "shop")
        await plane.settled()
        found = await plane.client.get(Kind("v1", "Namespace"), Key("", "shop"))
        managers = {(each["manager"], each.get("subresource", "")) for each in found.metadata["managedFields"]}
        assert ("kube-controller-manager", "status") in managers


async def test_two_control_planes_of_one_store_do_no_harm():
    """It is of no use, since each does all of the work; but everything is done once."""
    storage = MemoryStorage()
    async with storage, ControlPlane(storage=storage) as one, ControlPlane(storage=storage) as other:
        await one.client.create(Namespace(metadata=ObjectMeta(name="shop")))
        owner, _ = await family(one.client)
        await other.client.delete(ConfigMap, owner.key, propagation="Foreground")
        await one.client.delete(Namespace, "shop")
        for _ in range(2):
            await one.settled()
            await other.settled()
        assert await names(one.client) == []
        assert await one.client.find(Namespace, "shop") is None


# a control plane of a program's own kinds


async def test_creates_are_refused_with_a_reason_while_it_stops():
    """Events stay possible: controllers report what they still do."""
    async with ControlPlane() as plane:
        made = await plane.client.create(config_map("before"))
        plane.refuse_creates("the control plane is stopping")
        with pytest.raises(Forbidden, match="the control plane is stopping"):
            await plane.client.create(config_map("after"))
        event = {
            "metadata": {"name": "e", "namespace": "default"},
            "involvedObject": {"namespace": "default"},
            "reason": "Stopping",
        }
        await plane.client.create(Unstructured({"apiVersion": "v1", "kind": "Event", **event}))
        made.data = {"changed": "yes"}
        await plane.client.update(made)
        plane.refuse_creates("")
        await plane.client.create(config_map("again"))


async def test_the_kubeconfig_can_hold_a_token_instead_of_a_certificate():
    async with ControlPlane(kinds=["v1"], port=0, token="s3cret-s3cret-s3cret-s3cret-s3cr") as plane:
        written = yaml.safe_load(plane.kubeconfig.read_text())
        assert written["users"][0]["user"] == {"token": "s3cret-s3cret-s3cret-s3cret-s3cr"}
        assert plane.kubeconfig.stat().st_mode & 0o777 == 0o600
        async with Client.connect(kubeconfig=plane.kubeconfig) as client:
            await client.create(config_map("a"))
