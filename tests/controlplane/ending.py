"""Scenarios of namespaces: what is in them from the start, and how they end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from controlplane.collecting import HOLD, LEASE, SECRET
from controlplane.stage import NAMESPACE, WIDGET, Stage, ref

from steersman import Kind, Unstructured
from steersman.client import MergePatch
from steersman.objects import Key

SERVICE_ACCOUNT = Kind("v1", "ServiceAccount")
POD = Kind("v1", "Pod")
ROLE = Kind("rbac.authorization.k8s.io/v1", "Role")

_SPEC: dict[str, Any] = {"containers": [{"name": "web", "image": "web:1"}]}


async def _end(stage: Stage) -> Unstructured:
    namespace = await stage.client.get(NAMESPACE, Key("", stage.name))
    await stage.delete(namespace)
    return namespace


async def _says(stage: Stage, condition: str, reason: str, words: str = "") -> None:
    """Wait until the namespace says so in a condition."""

    async def holds() -> bool:
        found = await stage.client.get(NAMESPACE, Key("", stage.name))
        conditions = {each["type"]: each for each in found.get("status", "conditions", default=[])}
        said = conditions.get(condition, {"reason": "", "message": ""})
        return said["reason"] == reason and words in said["message"]

    await stage.until(f"{condition} is {reason}", holds)


async def a_namespace_has_an_account(stage: Stage) -> None:
    """It is there from the start."""
    await stage.namespace()
    await stage.exists(SERVICE_ACCOUNT, "default")


async def an_account_comes_back(stage: Stage) -> None:
    """A controller replaces a deleted one."""
    await stage.namespace()
    account = await stage.exists(SERVICE_ACCOUNT, "default")
    await stage.delete(account)
    await stage.gone(account)
    again = await stage.exists(SERVICE_ACCOUNT, "default")
    assert again.uid != account.uid


async def other_accounts_do_not_come_back(stage: Stage) -> None:
    """Only the default one does."""
    await stage.namespace()
    await stage.exists(SERVICE_ACCOUNT, "default")
    robot = await stage.make(SERVICE_ACCOUNT, "robot")
    await stage.delete(robot)


async def an_empty_namespace_ends(stage: Stage) -> None:
    """Nothing is left."""
    await stage.namespace()
    await stage.exists(SERVICE_ACCOUNT, "default")
    await stage.gone(await _end(stage))


async def a_full_namespace_ends(stage: Stage) -> None:
    """Whatever is in it goes with it, owned or not; what is elsewhere stays."""
    await stage.namespace()
    await stage.namespace("-beside")
    for number in range(4):
        await stage.config_map(f"map-{number}")
        await stage.make(SECRET, f"secret-{number}")
    owner = await stage.make(LEASE, "lease")
    await stage.make(ROLE, "role", ref(owner))
    await stage.make(WIDGET, "widget", ref(owner))
    await stage.make(POD, "pod", spec=_SPEC)
    await stage.config_map("stays", namespace=f"{stage.name}-beside")
    await stage.exists(SERVICE_ACCOUNT, "default")
    await stage.exists(SERVICE_ACCOUNT, "default", f"{stage.name}-beside")
    await stage.gone(await _end(stage))


async def held_content_holds_a_namespace(stage: Stage) -> None:
    """Its conditions say what is left, by resource and by finalizer."""
    await stage.namespace()
    await stage.config_map("held", finalizers=(HOLD,))
    await stage.config_map("held-twice", finalizers=(HOLD, "example.com/other"))
    await stage.make(WIDGET, "held", finalizers=(HOLD,))
    await stage.config_map("free")
    await _end(stage)
    await _says(stage, "NamespaceContentRemaining", "SomeResourcesRemain")


async def released_content_releases_a_namespace(stage: Stage) -> None:
    """When the last finalizer goes, the namespace goes."""
    await stage.namespace()
    held = await stage.config_map("held", finalizers=(HOLD,))
    namespace = await _end(stage)
    await _says(stage, "NamespaceFinalizersRemaining", "SomeFinalizersRemain")
    await stage.patch(held, {"finalizers": None})
    await stage.gone(namespace)


async def some_content_is_released(stage: Stage) -> None:
    """The conditions say what is left after that."""
    await stage.namespace()
    held = await stage.config_map("held", finalizers=(HOLD,))
    await stage.make(SECRET, "held", finalizers=(HOLD,))
    await _end(stage)
    await _says(stage, "NamespaceContentRemaining", "SomeResourcesRemain", "configmaps")
    await stage.patch(held, {"finalizers": None})
    await _says(stage, "NamespaceContentRemaining", "SomeResourcesRemain", "remaining: secrets. has 1")


async def a_pod_on_a_node_holds_everything(stage: Stage) -> None:
    """Pods go first: the rest is not touched while one ends."""
    await stage.namespace()
    await stage.exists(SERVICE_ACCOUNT, "default")
    await stage.make(POD, "pod", spec={**_SPEC, "nodeName": "somewhere", "terminationGracePeriodSeconds": 600})
    await stage.config_map("untouched")
    await _end(stage)
    await _says(stage, "NamespaceContentRemaining", "ContentRemoved")


async def a_pod_that_ends_releases_everything(stage: Stage) -> None:
    """When it has ended, the namespace goes."""
    await stage.namespace()
    spec = {**_SPEC, "nodeName": "somewhere", "terminationGracePeriodSeconds": 2}
    pod = await stage.make(POD, "pod", spec=spec)
    await stage.config_map("map")
    namespace = await _end(stage)
    await stage.deleting(pod)
    await stage.client.delete(POD, pod.key, grace_period_seconds=0)
    await stage.gone(pod, namespace)


async def a_pod_outstays_its_time(stage: Stage) -> None:
    """That is a failure, and a condition reports it."""
    await stage.namespace()
    await stage.exists(SERVICE_ACCOUNT, "default")
    await stage.make(POD, "pod", spec={**_SPEC, "nodeName": "somewhere", "terminationGracePeriodSeconds": 1})
    await _end(stage)
    await _says(stage, "NamespaceDeletionContentFailure", "ContentDeletionFailed")


async def a_finalizer_of_the_namespace_itself(stage: Stage) -> None:
    """Its content goes, it stays until that is removed."""
    await stage.namespace(finalizers=(HOLD,))
    await stage.config_map("map")
    namespace = await _end(stage)

    async def released() -> bool:
        found = await stage.find(namespace)
        return found is not None and not found.get("spec", "finalizers", default=[])

    await stage.until("the namespace is empty", released)


async def another_finalizer_of_its_spec(stage: Stage) -> None:
    """Only ours is removed."""
    name = f"{stage.name}"
    tree = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}, "spec": {"finalizers": [HOLD]}}
    namespace = await stage.client.create(Unstructured(tree))
    stage.uids[namespace.uid] = "Namespace"
    await stage.config_map("map")
    await stage.delete(namespace)

    async def ours_is_gone() -> bool:
        found = await stage.find(namespace)
        return found is not None and found.get("spec", "finalizers") == [HOLD]

    await stage.until("only the other finalizer is left", ours_is_gone)


async def owners_that_wait_in_a_namespace_that_ends(stage: Stage) -> None:
    """Foreground deletions in it come to their end."""
    await stage.namespace()
    owner = await stage.config_map("owner")
    child = await stage.config_map("child", ref(owner), finalizers=(HOLD,))
    await stage.delete(owner, "Foreground")
    await stage.deleting(child)
    namespace = await _end(stage)
    await _says(stage, "NamespaceFinalizersRemaining", "SomeFinalizersRemain")
    await stage.patch(child, {"finalizers": None})
    await stage.gone(owner, child, namespace)


async def a_cluster_scoped_owner_takes_its_namespace_along(stage: Stage) -> None:
    """A namespace can be a dependent."""
    owner = await stage.role("owner")
    await stage.make(NAMESPACE, stage.name, ref(owner))
    await stage.config_map("map")
    namespace = await stage.client.get(NAMESPACE, Key("", stage.name))
    await stage.quiet()
    await stage.delete(owner, "Foreground")
    await stage.gone(namespace, owner)


async def a_namespace_takes_its_dependents_along(stage: Stage) -> None:
    """A namespace can be an owner, also of what is elsewhere."""
    await stage.namespace()
    owner = await stage.client.get(NAMESPACE, Key("", stage.name))
    await stage.namespace("-beside")
    child = await stage.config_map("child", ref(owner), namespace=f"{stage.name}-beside")
    role = await stage.role("child", ref(owner))
    await stage.exists(SERVICE_ACCOUNT, "default", f"{stage.name}-beside")
    await stage.quiet()
    await stage.delete(owner, "Background")
    await stage.gone(owner, child, role)


async def a_namespace_again(stage: Stage) -> None:
    """Another one of the same name has an account of its own, and nothing of the first."""
    await stage.namespace()
    await stage.config_map("map")
    account = await stage.exists(SERVICE_ACCOUNT, "default")
    await stage.gone(await _end(stage))
    await stage.namespace()
    again = await stage.exists(SERVICE_ACCOUNT, "default")
    assert again.uid != account.uid


async def labels_change_while_it_ends(stage: Stage) -> None:
    """Other changes of the namespace are kept."""
    await stage.namespace()
    await stage.config_map("held", finalizers=(HOLD,))
    await _end(stage)
    await stage.client.patch(NAMESPACE, Key("", stage.name), MergePatch({"metadata": {"labels": {"seen": "yes"}}}))
    await _says(stage, "NamespaceContentRemaining", "SomeResourcesRemain")


SCENARIOS: tuple[Callable[[Stage], Awaitable[None]], ...] = (
    a_namespace_has_an_account,
    an_account_comes_back,
    other_accounts_do_not_come_back,
    an_empty_namespace_ends,
    a_full_namespace_ends,
    held_content_holds_a_namespace,
    released_content_releases_a_namespace,
    some_content_is_released,
    a_pod_on_a_node_holds_everything,
    a_pod_that_ends_releases_everything,
    a_pod_outstays_its_time,
    a_finalizer_of_the_namespace_itself,
    another_finalizer_of_its_spec,
    owners_that_wait_in_a_namespace_that_ends,
    a_cluster_scoped_owner_takes_its_namespace_along,
    a_namespace_takes_its_dependents_along,
    a_namespace_again,
    labels_change_while_it_ends,
)
