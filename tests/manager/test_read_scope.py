"""No read of a reconcile leaves the scope of its manager: random reads against a model.

Each run draws a manager (namespaces, options of kinds, uncached kinds) and reads with its ``ctx.client``: verb, interface,
selectors, version, page size, cached or not. The model has all objects; it says which of them a read returns, or which
error it raises. A read that returns more left the scope, one that returns less lost objects.
"""

from collections.abc import Mapping
from random import Random  # noqa: TID251 - seeded, and the seed is printed
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from samples import portions
from samples.limited import limited, rule
from samples.site import GROUP, Site, site
from steersman import Done, Key, Kind, Manager, MergePatch, ObjectMeta
from steersman.aio import Supervisor
from steersman.cache import KindOptions
from steersman.client import Added, Bookmark
from steersman.errors import Forbidden, NotCached, NotFound
from steersman.kinds.autoscaling_v1 import Scale
from steersman.kinds.coordination_v1 import Lease
from steersman.kinds.core_v1 import ConfigMap, Namespace, Secret
from steersman.kinds.rbac_v1 import Role, RoleBinding, RoleRef, Subject
from steersman.objects import FieldSelector, OwnerReference, PartialObjectMetadata, Selector, Unstructured

MANAGERS = portions.count(sample=6, of=40)
READS = 60
SEED = portions.seed_of("read scope")

NAMES = ("s0", "s1", "s2")
UNTYPED = {
    Secret: Kind("v1", "Secret"),
    ConfigMap: Kind("v1", "ConfigMap"),
    Site: Kind(f"{GROUP}/v1", "Site"),
    Namespace: Kind("v1", "Namespace"),
}
COLLECTIONS = ("list", "first", "exists", "pages", "iterate", "watch")
INDEXED = ("by_index", "owned_by")
#: The verbs that a cache may answer.
CACHED = ("get", "find", "list", "first", "exists", *INDEXED)


class Item(NamedTuple):
    """An object of the model."""

    key: Key
    labels: dict[str, str]
    type: str
    owned: bool

    def is_in(self, labels: Mapping[str, str], fields: Mapping[str, str]) -> bool:
        known = {"metadata.name": self.key.name, "type": self.type}
        return labels.items() <= self.labels.items() and fields.items() <= known.items()


class Scope(NamedTuple):
    """How a manager reads a kind."""

    namespaces: tuple[str, ...] = ()
    labels: Mapping[str, str] = MappingProxyType({})
    fields: Mapping[str, str] = MappingProxyType({})
    metadata_only: bool = False
    uncached: bool = False
    #: Whether the manager has options for the kind.
    said: bool = False


class Read(NamedTuple):
    """One read of ``ctx.client``."""

    kind: Any
    interface: str
    verb: str
    untyped: bool
    key: Key
    namespace: str | None
    labels: dict[str, str]
    fields: dict[str, str]
    version: str | None
    page_size: int

    @property
    def live(self) -> bool:
        return "live" in self.interface

    @property
    def metadata(self) -> bool:
        return "metadata" in self.interface

    @property
    def of_key(self) -> bool:
        return self.verb in {"get", "find", "get_subresource"}

    @property
    def place(self) -> str | None:
        """The namespace that the read names."""
        if self.kind is Namespace or self.verb == "owned_by":
            return None
        return self.key.namespace if self.of_key else self.namespace

    @property
    def given(self) -> Any:
        return UNTYPED[self.kind] if self.untyped else self.kind


class World:
    """The objects on the server."""

    def __init__(self, client, namespaces):
        self.client = client
        self.namespaces = namespaces
        self.items: dict[Any, list[Item]] = {kind: [] for kind in UNTYPED}
        self.owner = ""
        #: Values of the label ``team`` that no other object has.
        self.teams = tuple(f"{team}-{namespaces[0][-5:]}" for team in "xy")

    async def fill(self, random):
        """Create objects of all kinds in all namespaces; a cluster-scoped object owns half of them."""
        owner = await self.client.get(Namespace, self.namespaces[0])
        self.owner = owner.uid
        reference = OwnerReference(api_version="v1", kind="Namespace", name=owner.key.name, uid=owner.uid)
        for namespace in self.namespaces:
            labels = (await self.client.get(Namespace, namespace)).metadata.labels
            self.items[Namespace].append(Item(Key("", namespace), labels, "", owned=False))
            for name in NAMES:
                for kind in (Secret, ConfigMap, Site):
                    labels, owned = {"team": random.choice(self.teams)}, random.random() < 0.5
                    type_ = random.choice(("Opaque", "example.com/own")) if kind is Secret else ""
                    made = site(name, namespace) if kind is Site else kind(metadata=ObjectMeta(name=name))
                    made.metadata = ObjectMeta(
                        name=name, namespace=namespace, labels=labels, owner_references=[reference] if owned else None
                    )
                    if kind is Secret:
                        made.type = type_
                    await self.client.create(made)
                    self.items[kind].append(Item(Key(namespace, name), labels, type_, owned=owned))

    def drawn_scope(self, random, kind, namespaces):
        """A scope of a kind, its options and whether it is uncached."""
        if kind is Namespace:
            namespaces = ()
        drawn = random.choice(("none", "uncached", "labels", "fields", "both", "metadata", "elsewhere"))
        if drawn in {"none", "uncached"}:
            return Scope(namespaces, uncached=drawn == "uncached"), None
        labels = {"team": self.teams[0]} if drawn in {"labels", "both"} else {}
        fields = {}
        if drawn in {"fields", "both"}:
            name = self.namespaces[1] if kind is Namespace else random.choice(NAMES)
            fields = {"type": "Opaque"} if kind is Secret else {"metadata.name": name}
        only = random.random() < (0.9 if drawn == "metadata" else 0.2)
        here = (self.namespaces[1],) if drawn == "elsewhere" and kind is not Namespace else namespaces
        options = KindOptions(
            namespaces=here, labels=Selector.of(labels), fields=FieldSelector.of(fields), metadata_only=only
        )
        return Scope(here, labels, fields, metadata_only=only, said=True), options

    def drawn_read(self, random, kinds):
        kind = random.choice(kinds)
        interface = random.choice(("typed", "typed", "metadata", "live", "live metadata"))
        metadata = "metadata" in interface
        verb = random.choice(("get", "find", *COLLECTIONS, *(() if "live" in interface else INDEXED)))
        if kind is Site and not metadata and random.random() < 0.1:
            verb = "get_subresource"
        # The server ignores a namespace for a cluster-scoped kind, so it is no way out of the scope.
        place = kind is not Namespace or "live" in interface
        namespace = random.choice((None, None, *(self.namespaces if place else ())))
        names = self.namespaces if kind is Namespace else (*NAMES, "missing")
        key = Key("" if kind is Namespace else random.choice(self.namespaces), random.choice(names))
        labels = random.choice(({}, *({"team": team} for team in self.teams)))
        fields = random.choice(({}, {}, {"metadata.name": key.name}, *([{"type": "Opaque"}] if kind is Secret else ())))
        return Read(
            kind=kind,
            interface=interface,
            verb=verb,
            untyped=verb != "by_index" and random.random() < 0.3,
            key=key,
            namespace=namespace,
            labels=labels,
            fields=fields,
            version=random.choice((None, None, "0")),
            page_size=random.choice((0, 1, 2, 500)),
        )

    def expected(self, read, scope, *, manager_namespaces, forbidden):
        """The keys that a read finds, or the class of its error."""
        explicit = read.live and (read.of_key or bool(read.place))
        scope = Scope() if explicit else scope
        refusal = None if explicit else self._refusal(read, scope, manager_namespaces, forbidden)
        if refusal is not None:
            return refusal
        found, denied = [], False
        for place in (read.place,) if read.place else sorted(scope.namespaces) or self.namespaces:
            denied = denied or place in forbidden
            if denied and not (found and read.verb in {"first", "exists"}):
                return Forbidden
            found += [] if denied else self._selected(read, scope, place)
        if read.verb in {"get", "get_subresource"} and not found:
            return NotFound
        return {each.key for each in found}

    def _selected(self, read, scope, place):
        labels, fields = (read.labels, read.fields) if read.verb in COLLECTIONS else ({}, {})
        return [
            each
            for each in self.items[read.kind]
            if place in {each.key.namespace, each.key.name}
            and each.is_in(labels, fields)
            and each.is_in(scope.labels, scope.fields)
            and (not read.of_key or each.key == read.key)
            and (read.verb != "owned_by" or each.owned)
            and (read.verb != "by_index" or each.labels["team"] == self.teams[0])
        ]

    def _refusal(self, read, scope, manager_namespaces, forbidden):
        """The error of a read outside the scope, or in a form that the cache does not have."""
        if not read.live and read.verb in CACHED and (refusal := _form_refusal(read, scope, manager_namespaces)):
            return refusal
        if read.verb in INDEXED and set(scope.namespaces) & set(forbidden):
            return Forbidden  # an index needs the whole cache
        if read.place and scope.namespaces and read.place not in scope.namespaces:
            return NotCached
        return ValueError if read.verb == "watch" and not read.place and len(scope.namespaces) > 1 else None


#: Options that no cache answers.
SERVER = {"fields", "resource_version"}


def _form_refusal(read, scope, manager_namespaces):
    if read.verb in INDEXED and (scope.uncached or read.metadata != scope.metadata_only):
        return NotCached
    from_server = scope.uncached or (read.metadata and not scope.metadata_only) or _options(read).keys() & SERVER
    if not read.metadata and scope.metadata_only and not from_server:
        return NotCached
    # A cache of several namespaces must know whether a kind is namespaced.
    return ValueError if read.untyped and manager_namespaces and not scope.said and not from_server else None


def _options(read):
    """The keyword arguments of a read."""
    options = {}
    if read.verb == "get" and read.version is not None:
        options["resource_version"] = read.version
    if read.verb in COLLECTIONS:
        options = {"namespace": read.namespace}
        options |= {"labels": read.labels} if read.labels else {}
        options |= {"fields": read.fields} if read.fields else {}
    if read.verb in {"list", "pages", "iterate"}:
        options["page_size"] = read.page_size
    if read.verb in {"list", "first", "exists"} and read.version is not None:
        options["resource_version"] = read.version
    return options


async def watched(reads, kind, options):
    """The objects with which a watch begins."""
    found = []
    async with reads.watch(kind, initial_events=True, **options) as events:
        async for event in events:
            if isinstance(event, Bookmark):
                break
            found += [event.object] if isinstance(event, Added) else []
    return found


async def sent(client, read, world):
    """The objects that a read returns, a bool for ``exists``, or its error."""
    reads = client.live if read.live else client
    reads = reads.metadata if read.metadata else reads
    options, kind = _options(read), read.given
    single = {
        "get": lambda: reads.get(kind, read.key, **options),
        "find": lambda: reads.find(kind, read.key),
        "get_subresource": lambda: reads.get_subresource(kind, read.key, "scale", returns=Scale),
        "first": lambda: reads.first(kind, **options),
    }
    several = {
        "list": lambda: reads.list(kind, **options),
        "by_index": lambda: reads.by_index(kind, "team", world.teams[0], namespace=read.namespace),
        "owned_by": lambda: reads.owned_by(kind, world.owner),
        "watch": lambda: watched(reads, kind, options),
    }
    try:
        if read.verb == "exists":
            return await reads.exists(kind, **options)
        if read.verb == "pages":
            return [each async for page in reads.pages(kind, **options) for each in page]
        if read.verb == "iterate":
            return [each async for each in reads.iterate(kind, **options)]
        if read.verb in single:
            return [each for each in [await single[read.verb]()] if each is not None]
        return list(await several[read.verb]())
    except Exception as error:  # noqa: BLE001 - compared with the expected one
        return error


def check(got, world, read, expected, *, forbidden):
    """Compare the result of a read with the model."""
    if isinstance(expected, type) or isinstance(got, Exception):
        assert isinstance(expected, type)
        assert isinstance(got, expected)
        assert expected is not Forbidden or any(namespace in str(got) for namespace in forbidden)
        return
    if read.verb == "exists":
        # without labels, objects of others may match
        assert got is bool(expected) or (got and not read.labels)
        return
    form = PartialObjectMetadata if read.metadata else Unstructured if read.untyped else read.kind
    assert read.verb == "get_subresource" or all(type(each) is form for each in got)
    universe = {each.key for each in world.items[read.kind]}
    keys = [each.key for each in got if each.key in universe]
    assert len(keys) == len(set(keys))
    if read.verb == "first":
        assert keys == sorted(expected)[:1] if keys else got or not expected
    else:
        assert set(keys) == expected


async def play(random, client, world, kinds, *, namespaces, forbidden=()):
    """Run one manager and read with its client."""
    scopes, options, uncached = {}, {}, []
    for kind in kinds:
        scopes[kind], said = world.drawn_scope(random, kind, namespaces)
        name = random.choice((kind, UNTYPED[kind]))
        if said is not None:
            options[name] = said
        if scopes[kind].uncached:
            uncached.append(name)
    here = KindOptions(namespaces=world.namespaces[:1])
    manager = Manager(client, name="scoped", namespaces=namespaces, kinds={**options, Lease: here}, uncached=uncached)
    for kind in kinds:
        if not scopes[kind].uncached:
            manager.index(kind, "team", lambda obj: [(obj.metadata.labels or {}).get("team", "")])
    problems, count = [], 0

    async def reconcile(ctx, request):
        nonlocal count
        while count < READS and not problems:
            count += 1
            read = world.drawn_read(random, kinds)
            scope = scopes[read.kind]
            expected = world.expected(read, scope, manager_namespaces=namespaces, forbidden=forbidden)
            got = await sent(ctx.client, read, world)
            try:
                check(got, world, read, expected, forbidden=forbidden)
            except AssertionError:
                problems.append(f"Manager(namespaces={namespaces}), {scope}, {read}: expected {expected}, got {got!r}")
        manager.stop()
        return Done()

    manager.controller(Lease).run_with(reconcile)
    async with Supervisor() as tasks:
        tasks.start(manager.run(), name="manager")
    assert not problems, problems[0]
    assert count == READS


@pytest.fixture
async def world(api_server, client, namespace, sites):
    """Three namespaces with objects of three kinds; the namespaces themselves are objects of a fourth."""
    random, names = Random(f"{SEED}/world"), [namespace]
    others = [await client.create(Namespace(metadata=ObjectMeta(generate_name="scope-"))) for _ in range(2)]
    names += [each.key.name for each in others]
    world = World(client, tuple(names))
    for name in names:
        labels = {"team": random.choice(world.teams)}
        await client.patch(Namespace, name, MergePatch({"metadata": {"labels": labels}}))
    await world.fill(random)
    await client.create(Lease(metadata=ObjectMeta(name="here", namespace=namespace)))
    yield world
    for each in others:
        await client.delete(each)


async def test_no_read_leaves_the_scope_of_the_manager(client, world):
    """A filter, another interface or another way of reading never widens what a reconcile sees."""
    random = Random(SEED)
    a, b, _ = world.namespaces
    for _ in range(MANAGERS):
        await play(random, client, world, tuple(UNTYPED), namespaces=random.choice(((), (a,), (a, b), (b, a))))


async def test_a_program_with_rights_in_some_namespaces_reads_each_of_them(api_server, client, world):
    """Lists need no right beyond the namespaces of the manager; one without rights is an error that names it."""
    random = Random(SEED + 1)
    a, b, c = world.namespaces
    rules = [rule("secrets"), rule("configmaps"), rule("leases", group="coordination.k8s.io")]
    async with limited(api_server, client, a, *rules) as operator:
        metadata = ObjectMeta(name="limited", namespace=b)
        await client.create(Role(metadata=metadata, rules=rules))
        await client.create(
            RoleBinding(
                metadata=metadata,
                role_ref=RoleRef(api_group="rbac.authorization.k8s.io", kind="Role", name="limited"),
                subjects=[Subject(kind="ServiceAccount", name="limited", namespace=a)],
            )
        )
        for _ in range(MANAGERS // 2):
            namespaces = random.choice(((a,), (a, b), (a, b, c), (c, b)))
            await play(random, operator.client, world, (Secret, ConfigMap), namespaces=namespaces, forbidden=(c,))
