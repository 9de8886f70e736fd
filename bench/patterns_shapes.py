"""The operators whose requests are counted: a generator, and three states with and without ordered deletion.

Their children are ready as soon as they exist, so that only the operator decides how often it writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from steersman import Manager, ObjectMeta, Resource, Spec, Status
from steersman.kinds.core_v1 import ConfigMap, Secret, ServiceAccount
from steersman.objects import Object
from steersman.patterns import Done, Next, Outputs, StateMachine, generates, state

GROUP = "requests.bench.example.com"
CHILD_KINDS = (ConfigMap, Secret, ServiceAccount)


class ShapeSpec(Spec):
    """The desired state."""

    title: str
    #: Adds another child.
    extra: bool = False


class Generated(Resource[ShapeSpec, Status], group=GROUP, version="v1"):
    """Reconciled by a function."""


class Staged(Resource[ShapeSpec, Status], group=GROUP, version="v1"):
    """Reconciled in states; the garbage collector removes its children."""


class Ordered(Resource[ShapeSpec, Status], group=GROUP, version="v1"):
    """Reconciled in states; its children are deleted in reverse order."""


AnyShape = Generated | Staged | Ordered


def account(owner: AnyShape) -> ServiceAccount:
    return ServiceAccount(metadata=_metadata(owner, "account"), automount_service_account_token=False)


def secret(owner: AnyShape) -> Secret:
    return Secret(metadata=_metadata(owner, "secret"), string_data={"token": "steady"})


def pages(owner: AnyShape) -> Iterator[ConfigMap]:
    yield ConfigMap(metadata=_metadata(owner, "page"), data={"title": owner.spec.title})
    if owner.spec.extra:
        yield ConfigMap(metadata=_metadata(owner, "extra"), data={"extra": "yes"})


def _metadata(owner: AnyShape, part: str) -> ObjectMeta:
    return ObjectMeta(name=f"{owner.key.name}-{part}", namespace=owner.key.namespace)


@generates(Generated, children=CHILD_KINDS)
def generated(owner: Generated) -> list[Object]:
    """All children at once."""
    return [account(owner), secret(owner), *pages(owner)]


class StagedMachine(StateMachine[Staged], children=CHILD_KINDS):
    """One child after the other."""

    @state(condition="AccountReady")
    async def account(self, owner: Staged, out: Outputs) -> Next:
        """The account."""
        out.apply(account(owner))
        return Next()

    @state(condition="SecretReady")
    async def secret(self, owner: Staged, out: Outputs) -> Next:
        """The secret."""
        out.apply(secret(owner))
        return Next()

    @state(condition="PagesReady")
    async def pages(self, owner: Staged, out: Outputs) -> Done:
        """What is shown."""
        for page in pages(owner):
            out.apply(page)
        return Done()


class OrderedMachine(StateMachine[Ordered], children=CHILD_KINDS, ordered_deletion=True):
    """The same, deleted in reverse order."""

    @state(condition="AccountReady")
    async def account(self, owner: Ordered, out: Outputs) -> Next:
        """The account."""
        out.apply(account(owner))
        return Next()

    @state(condition="SecretReady")
    async def secret(self, owner: Ordered, out: Outputs) -> Next:
        """The secret."""
        out.apply(secret(owner))
        return Next()

    @state(condition="PagesReady")
    async def pages(self, owner: Ordered, out: Outputs) -> Done:
        """What is shown."""
        for page in pages(owner):
            out.apply(page)
        return Done()


@dataclass(frozen=True)
class Shape:
    """An operator, and its minimum of writes beside one per child and one for the status."""

    name: str
    kind: type[Generated | Staged | Ordered]
    manager: Callable[[], Manager]
    #: Whether it sets a finalizer first, and removes it last.
    finalizer: bool = False


def _manager(machine: object) -> Manager:
    manager = Manager(name="shapes")
    manager.add(machine)  # type: ignore[arg-type]
    return manager


SHAPES = (
    Shape("generator", Generated, lambda: _manager(generated)),
    Shape("3 states", Staged, lambda: _manager(StagedMachine())),
    Shape("3 states, ordered deletion", Ordered, lambda: _manager(OrderedMachine()), finalizer=True),
)
