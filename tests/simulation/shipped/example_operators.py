"""The operators of `examples`, as programs to simulate.

Not here, because they have no operator: site_client, rbac_in_a_test, testing, and shop.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from importlib import import_module

import examples.external_job
import examples.once
import examples.restart_on_change
import examples.schedule
import examples.secret_reflector
import examples.secure_storage.bare
import examples.secure_storage.operator
import examples.shop_webhooks
from examples.namespace_quota import CLASS, QuotaClass, QuotaClassSpec
from simulation.shipped.shipped_program import NO_MEDDLING, ShippedProgram
from simulation.shipped.stand_ins import LONG, machine, with_cloud, with_processes

from steersman import Manager, MergePatch, ObjectMeta, Quantity, utc_now
from steersman.errors import AlreadyExists, ApiError
from steersman.kinds.apps_v1 import Deployment, DeploymentSpec
from steersman.kinds.core_v1 import (
    Container,
    EnvFromSource,
    Namespace,
    PodSpec,
    PodTemplateSpec,
    Secret,
    SecretEnvSource,
)
from steersman.kinds.meta_v1 import LabelSelector
from steersman.simulation import Objects, Scenario, ScenarioUser, always, at_rest, derived_workload
from steersman.simulation.programs import program
from steersman.simulation.runs.schedules import Violation
from steersman.testing import WorkloadRunner

#: Examples of which everything can be derived.
_PLAIN = (
    "site_generator",
    "site_operator",
    "immutable_settings",
    "application_namespace.operator",
    "application_namespace.bare",
    "postgres_cluster.operator",
    "postgres_cluster.bare",
)
#: Examples that go further when their Pods run.
_WITH_PODS = ("site_operator", "immutable_settings", "postgres_cluster.operator", "postgres_cluster.bare")

_HOUR = timedelta(hours=1)


def _plain(name: str) -> ShippedProgram:
    manager = import_module(f"examples.{name}").manager
    return ShippedProgram(scenario=Scenario(f"examples.{name}", derived_workload(manager)))


def _with_pods(name: str) -> ShippedProgram:
    manager = import_module(f"examples.{name}").manager
    scenario = Scenario(f"examples.{name}", derived_workload(manager), beside={"cluster": WorkloadRunner})
    return ShippedProgram(scenario=scenario, faults=NO_MEDDLING)


# examples that need a workload of their own


async def hours(user: ScenarioUser) -> None:
    """A Schedule of an hour, looked at between its ticks."""
    spec = examples.schedule.ScheduleSpec(every="1h", image="busybox", keep=2)
    await user.client.create(examples.schedule.Schedule(metadata=ObjectMeta(name="tidy"), spec=spec))
    for _ in range(4):
        now = utc_now()
        past = timedelta(minutes=now.minute, seconds=now.second, microseconds=now.microsecond)
        # Half past the next hour: no fault moves a clock that far.
        await user.sleep((_HOUR * 1.5 - past).total_seconds())
        await user.settled()
    await user.client.patch(examples.schedule.Schedule, "tidy", MergePatch({"spec": {"keep": 1}}))
    await user.settled()
    await user.client.delete(examples.schedule.Schedule, "tidy")
    await user.settled()


async def _namespace(user: ScenarioUser, name: str, **labels: str) -> None:
    await user.client.create(Namespace(metadata=ObjectMeta(name=name, labels=labels or None)))


async def _label(user: ScenarioUser, namespace: str, name: str, value: str | None) -> None:
    await user.client.patch(Namespace, namespace, MergePatch({"metadata": {"labels": {name: value}}}))


async def classes(user: ScenarioUser) -> None:
    """Two namespaces choose a class of quotas, and another one."""
    for name in ("blue", "red"):
        await _namespace(user, name)
        await _label(user, name, CLASS, "small")
    for name, pods in (("small", 5), ("large", 50)):
        spec = QuotaClassSpec(hard={"pods": Quantity(pods)})
        await user.client.create(QuotaClass(metadata=ObjectMeta(name=name), spec=spec))
        await user.settled()
    await _label(user, "red", CLASS, "large")
    await user.settled()
    await user.client.patch(QuotaClass, "small", MergePatch({"spec": {"hard": {"pods": "7"}}}))
    await user.settled()
    await user.client.delete(Namespace, "blue")
    await user.settled()
    await _label(user, "red", CLASS, None)
    for name in ("small", "large"):
        await user.client.delete(QuotaClass, name)
    await user.settled()


async def reflections(user: ScenarioUser) -> None:
    """A Secret is shared, wanted, changed, and no longer wanted."""
    wants, shared = examples.secret_reflector.WANTS, examples.secret_reflector.SHARED
    for name in ("platform", "blog", "shop"):
        await _namespace(user, name)
    metadata = ObjectMeta(name="registry", namespace="platform", labels={shared: "true"})
    await user.client.create(Secret(metadata=metadata, string_data={"token": "abc"}))
    for name in ("blog", "shop"):
        await _label(user, name, wants, "platform.registry")
    await user.settled()
    await user.client.patch(Secret, "platform/registry", MergePatch({"stringData": {"token": "def"}}))
    await user.settled()
    await _label(user, "shop", wants, None)
    await user.client.delete(Namespace, "blog")
    await user.settled()
    await _label(user, "shop", wants, "platform.registry")
    await user.settled()
    await user.client.delete(Secret, "platform/registry")
    await user.settled()


async def restarts(user: ScenarioUser) -> None:
    """A Secret is missing at first, changed, replaced, and no longer named."""
    labels = {"app": "web"}
    source = EnvFromSource(secret_ref=SecretEnvSource(name="web"))
    web = PodSpec(containers=[Container(name="web", image="nginx:1.27", env_from=[source])])
    template = PodTemplateSpec(metadata=ObjectMeta(labels=labels), spec=web)
    metadata = ObjectMeta(name="web", labels={examples.restart_on_change.ON_CHANGE: "true"})
    spec = DeploymentSpec(selector=LabelSelector(match_labels=labels), template=template)
    await user.client.create(Deployment(metadata=metadata, spec=spec))
    await user.settled()
    await user.client.create(Secret(metadata=ObjectMeta(name="web"), string_data={"token": "abc"}))
    await user.settled()
    await user.client.patch(Secret, "web", MergePatch({"stringData": {"token": "def"}}))
    await user.settled()
    await user.client.delete(Secret, "web")
    await user.client.create(Secret(metadata=ObjectMeta(name="web"), string_data={"token": "xyz"}))
    await user.settled()
    container = {"name": "web", "image": "nginx:1.28"}
    await user.client.patch(
        Deployment, "web", MergePatch({"spec": {"template": {"spec": {"containers": [container]}}}})
    )
    await user.settled()
    await user.client.patch(Secret, "web", MergePatch({"stringData": {"token": "unread"}}))
    await user.settled()
    await user.client.delete(Deployment, "web")
    await user.settled()


async def commands(user: ScenarioUser) -> None:
    """One process ends, one is changed, one is deleted while it runs."""
    kind, spec = examples.external_job.Command, examples.external_job.CommandSpec
    for name, argv in {"quick": ["true"], "wrong": ["false"], "nap": ["sleep", "9"]}.items():
        await user.client.create(kind(metadata=ObjectMeta(name=name), spec=spec(argv=argv)))
    await user.settled()
    await user.client.patch(kind, "nap", MergePatch({"spec": {"argv": ["sleep", "8"]}}))
    await user.client.patch(kind, "quick", MergePatch({"spec": {"argv": ["date"]}}))
    await user.settled()
    # A crash starts the program of a Command again, and a schedule has up to four.
    await user.sleep(6 * LONG)
    await user.settled()
    await user.client.patch(kind, "wrong", MergePatch({"spec": {"argv": ["sleep", "7"]}}))
    await user.settled()
    for name in ("quick", "wrong", "nap"):
        await user.client.delete(kind, name)
    await user.settled()


async def tasks(user: ScenarioUser) -> None:
    """Two Tasks, of which each runs at most once."""
    kind, spec = examples.once.Task, examples.once.TaskSpec
    for name, argv in {"date": ["date"], "wrong": ["false"]}.items():
        await user.client.create(kind(metadata=ObjectMeta(name=name), spec=spec(argv=argv)))
        await user.settled()
    # Only one: a start cannot be undone, and would be a leak when all are gone.
    await user.client.delete(kind, "date")
    await user.settled()


def at_most_once(_: Objects) -> bool:
    """No program was started twice."""
    started = [tuple(argv) for argv in machine.objects.values()]
    return len(started) == len(set(started))


def all_over(objects: Objects) -> bool:
    """Each Task says what became of it."""
    kind = examples.once.Task
    return all(task.status is not None and task.status.completed_at is not None for task in objects.list(kind))


def lost(violation: Violation) -> bool:
    """The example says that a Task is Lost if its operator cannot know what became of it."""
    words = violation.words.partition(": ")[2].split("; ")
    return violation.oracle == "state" and all(word.startswith(("tasks ", "machine ")) for word in words)


async def shops(user: ScenarioUser) -> None:
    """Shops of both versions; some requests are refused."""
    kind, spec = examples.shop_webhooks.Shop, examples.shop_webhooks.ShopSpec
    old, old_spec = examples.shop_webhooks.OldShop, examples.shop_webhooks.OldShopSpec
    await user.client.create(kind(metadata=ObjectMeta(name="home"), spec=spec(host="home.example.com", protected=True)))
    with suppress(AlreadyExists):  # it was stored, and only its reply could not be converted
        await user.client.create(
            old(metadata=ObjectMeta(name="past"), spec=old_spec(domain="past.example.com", size="large"))
        )
    await user.settled()
    await _refused(user, {"host": "another.example.com"})
    await _refused(user, {"replicas": 51})
    with suppress(ApiError):  # it is protected
        await user.client.delete(kind, "home")
    await user.settled()
    await user.client.patch(kind, "home", MergePatch({"spec": {"protected": False, "replicas": 3}}))
    await user.client.patch(old, "past", MergePatch({"spec": {"size": "small"}}))
    await user.settled()
    for name in ("home", "past"):
        await user.client.delete(kind, name)
    await user.settled()


async def _refused(user: ScenarioUser, spec: dict[str, object]) -> None:
    try:
        await user.client.patch(examples.shop_webhooks.Shop, "home", MergePatch({"spec": spec}))
    except ApiError:
        return
    raise AssertionError(f"the change to {spec} was accepted")


def _storage(make: Callable[[], Manager]) -> ShippedProgram:
    return ShippedProgram(scenario=Scenario(with_cloud(make), derived_workload(make())))


#: Each example that has an operator, by its name.
EXAMPLES: dict[str, Callable[[], ShippedProgram]] = {
    **{name: lambda name=name: _plain(name) for name in _PLAIN},
    **{f"{name}, with Pods": lambda name=name: _with_pods(name) for name in _WITH_PODS},
    # A Job that a person deletes is not run again.
    "schedule": lambda: ShippedProgram(scenario=Scenario("examples.schedule", hours), faults=NO_MEDDLING),
    "namespace_quota": lambda: ShippedProgram(scenario=Scenario("examples.namespace_quota", classes)),
    "secret_reflector": lambda: ShippedProgram(scenario=Scenario("examples.secret_reflector", reflections)),
    "restart_on_change": lambda: ShippedProgram(scenario=Scenario("examples.restart_on_change", restarts)),
    "external_job": lambda: ShippedProgram(
        scenario=Scenario(with_processes(program("examples.external_job")), commands)
    ),
    "once": lambda: ShippedProgram(
        scenario=Scenario(
            with_processes(program("examples.once"), compared=True),
            tasks,
            checks=[always(at_most_once), at_rest(all_over)],
        ),
        excused=lost,
    ),
    "shop_webhooks": lambda: ShippedProgram(scenario=Scenario("examples.shop_webhooks", shops)),
    "secure_storage.operator": lambda: _storage(examples.secure_storage.operator.make),
    "secure_storage.bare": lambda: _storage(examples.secure_storage.bare.make),
}
