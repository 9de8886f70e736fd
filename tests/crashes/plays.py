"""What is played with each example: random specs, and what they must become, as pure functions.

Everything in the places of a play is the operator's: what is there and not expected is an orphan.
"""

from __future__ import annotations

import hashlib
import random  # noqa: TID251 - a play is repeated by its seed
from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar, Self

from samples.hands import claims_are_bound, quotas_are_counted, stateful_sets_run
from samples.stage import load
from steersman import Key, Object, ObjectMeta, Quantity
from steersman.controller import Blueprint
from steersman.kinds.apps_v1 import StatefulSet
from steersman.kinds.batch_v1 import CronJob
from steersman.kinds.core_v1 import ConfigMap, Namespace, PersistentVolumeClaim, ResourceQuota, Secret, Service
from steersman.kinds.networking_v1 import NetworkPolicy
from steersman.kinds.rbac_v1 import RoleBinding

#: Kind, namespace, name, and what matters of its content.
Part = tuple[str, str, str, str]
SLOTS = ("ada", "ben", "cleo", "dan", "eve")


class Play(ABC):
    """One example."""

    name: ClassVar[str]
    kinds: ClassVar[tuple[type[Object], ...]]
    #: Whether an object goes only after everything that it consists of.
    ordered: ClassVar[bool] = False
    #: How often an object is deleted, rather than changed.
    deletions: ClassVar[float] = 0.3
    namespace: str = "crashes"

    def __init__(self, folder: Path) -> None:
        #: For what it keeps beside the cluster.
        self.folder = folder
        self.types: Any = load(f"{self.name}.types")

    @property
    @abstractmethod
    def primary(self) -> type[Object]:
        """The kind that the operator is for."""

    @property
    def all_kinds(self) -> tuple[type[Object], ...]:
        """The primary kind and those of its children."""
        return (self.primary, *self.kinds)

    @property
    def environment(self) -> dict[str, str]:
        """What the operator's process has to know."""
        return {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:  # noqa: B027 - most have nothing to end
        """End what runs beside the operator."""

    def hands(self) -> list[Blueprint]:
        """The controllers that make the children ready."""
        return []

    @abstractmethod
    def spec(self, dice: random.Random) -> Any:
        """A spec, whatever it may be."""

    def changed(self, spec: Any, dice: random.Random) -> Any:
        """Another spec for an object that has this one."""
        return self.spec(dice)

    def make(self, name: str, spec: Any) -> Any:
        """An object with this spec."""
        return self.primary(metadata=ObjectMeta(name=name, namespace=self.namespace), spec=spec)

    @abstractmethod
    def expected(self, name: str, spec: Any) -> Iterable[Part]:
        """What an object consists of once it is ready."""

    @abstractmethod
    def content(self, child: Any) -> str | None:
        """What matters of something that exists; None if it lies outside of the play."""

    def parts(self, objects: Iterable[Object]) -> dict[Part, Object]:
        """What is there of all objects."""
        found: dict[Part, Object] = {}
        for each in objects:
            if not isinstance(each, self.primary):
                content = self.content(each)
                if content is not None:
                    found[type(each).__name__, each.key.namespace, each.key.name, content] = each
        return found

    def outside(self, wanted: dict[str, Any]) -> list[str]:
        """What is not as it should be outside of the cluster, given the specs of all objects by their uids."""
        return []

    def figures(self) -> dict[str, int]:
        """What else can be told in the end."""
        return {}

    def effects_of(self, uid: str) -> list[str]:
        """What there is outside of the cluster for one object."""
        return []

    def problem(self, before: dict[tuple[str, Key], Object], child: Object, *, gone: bool) -> str:
        """What must not happen to a child, given everything as it was; words if it did."""
        return ""


class PostgresPlay(Play):
    """Clusters that grow, shrink, roll, and lose their backups."""

    name = "postgres_cluster"
    kinds = (StatefulSet, Service, CronJob, PersistentVolumeClaim, ConfigMap, Secret)
    ordered = True

    @property
    def primary(self) -> type[Object]:
        return self.types.PostgresCluster

    def hands(self) -> list[Blueprint]:
        return [claims_are_bound(), stateful_sets_run()]

    def spec(self, dice: random.Random) -> Any:
        return self.types.PostgresClusterSpec(
            version=dice.choice(("16.6", "17.2")),
            storage=Quantity("1Gi"),
            replicas=dice.randint(0, 3),
            settings=dice.choice((None, {"work_mem": f"{dice.randint(1, 64)}MB"})),
            backup_schedule=dice.choice((None, "0 3 * * *", "30 4 * * *")),
        )

    def expected(self, name: str, spec: Any) -> Iterable[Part]:
        def part(kind: str, suffix: str, content: str = "") -> Part:
            return kind, self.namespace, f"{name}{suffix}", content

        settings = {"listen_addresses": "*"} | (spec.settings or {})
        lines = "".join(f"{key} = '{value}'\n" for key, value in sorted(settings.items()))
        template = f"postgres:{spec.version} {hashlib.sha256(lines.encode()).hexdigest()[:16]}"
        yield part("ConfigMap", "-config", lines)
        yield part("Secret", "-credentials")
        yield part("Service", "")
        if spec.replicas:
            yield part("Service", "-replicas")
        for member in ("primary", *(f"replica-{number}" for number in range(1, spec.replicas + 1))):
            yield part("PersistentVolumeClaim", f"-{member}", "Bound")
            yield part("StatefulSet", f"-{member}", template)
        if spec.backup_schedule:
            yield part("CronJob", "-backup", spec.backup_schedule)

    def content(self, child: Any) -> str | None:
        if child.key.namespace != self.namespace or child.key.name == "kube-root-ca.crt":
            return None
        match child:
            case StatefulSet():
                template = child.spec.template
                return f"{template.spec.containers[0].image} {' '.join((template.metadata.annotations or {}).values())}"
            case ConfigMap():
                return child.data["postgresql.conf"]
            case CronJob():
                return child.spec.schedule
            case PersistentVolumeClaim():
                return "Terminating" if child.deleting else child.status.phase
            case _:
                return ""

    def problem(self, before: dict[tuple[str, Key], Object], child: Object, *, gone: bool) -> str:
        """An unready primary never removes a replica, and what every cluster has is not taken from it.

        The state of the primary comes by the same watch as that of its replicas, so the order is the server's.
        """
        name, _, member = child.key.name.partition("-")
        if not (gone or child.deleting) or child.key.namespace != self.namespace:
            return ""
        if member in {"", "primary", "config", "credentials"}:
            return f"{child.kind} {child.key.name} was removed"
        if not isinstance(child, StatefulSet):
            return ""
        primary = before.get(("StatefulSet", Key(self.namespace, f"{name}-primary")))
        if not isinstance(primary, StatefulSet):
            return f"{child.key.name} was removed while there was no primary"
        seen = primary.status
        if seen is None or seen.observed_generation != primary.generation or not seen.ready_replicas:
            return f"{child.key.name} was removed while the primary was not ready"
        return ""


class NamespacePlay(Play):
    """Namespaces whose content comes and goes."""

    name = "application_namespace"
    kinds = (Namespace, RoleBinding, ResourceQuota, NetworkPolicy)
    deletions = 0.15  # the end of a namespace takes Kubernetes five seconds
    namespace = ""

    @property
    def primary(self) -> type[Object]:
        return self.types.ApplicationNamespace

    def hands(self) -> list[Blueprint]:
        return [quotas_are_counted()]

    def spec(self, dice: random.Random) -> Any:
        owners = dice.sample(("jane", "joe", "kim"), dice.randint(0, 3))
        return self.types.ApplicationNamespaceSpec(
            owners=owners or None,
            quota=dice.choice((None, {"pods": Quantity(str(dice.randint(1, 50)))})),
            labels=dice.choice((None, {"team": dice.choice(("shop", "bank"))}, {"tier": "web"})),
            isolated=dice.random() < 0.5,
        )

    def expected(self, name: str, spec: Any) -> Iterable[Part]:
        labels = sorted((spec.labels or {}).items())
        yield "Namespace", "", name, f"Active {labels}"
        if spec.owners:
            yield "RoleBinding", name, "owners", " ".join(spec.owners)
        if spec.quota:
            yield "ResourceQuota", name, "application", str(spec.quota["pods"])
        if spec.isolated:
            yield "NetworkPolicy", name, "isolation", ""

    def content(self, child: Any) -> str | None:
        if (child.key.namespace or child.key.name) not in SLOTS:
            return None
        match child:
            case Namespace():
                labels = {key: value for key, value in (child.metadata.labels or {}).items() if key in {"team", "tier"}}
                return f"{child.status.phase} {sorted(labels.items())}"
            case RoleBinding():
                return " ".join(subject.name for subject in child.subjects)
            case ResourceQuota():
                return str(child.spec.hard["pods"])
            case _:
                return ""
