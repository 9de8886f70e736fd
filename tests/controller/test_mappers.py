"""From what changed to what is reconciled."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from samples.controllers import changed, owner, view
from samples.site import Site
from samples.virtual_time import run_virtual
from steersman.controller import LOW_PRIORITY, KindSource, ObjectEvent, Request, labels_changed, owners_through, when
from steersman.controller.sources.mappers import NO_STORES, Owners, SameObject, function_mapper
from steersman.kinds.apps_v1 import Deployment, ReplicaSet
from steersman.kinds.core_v1 import Namespace, Pod
from steersman.objects import Key


def request(text):
    return Request(Key.parse(text))


class Shelf:
    """Stores of a test: objects by kind and key."""

    def __init__(self, *views):
        self.views = {(each.kind, each.key): each for each in views}

    def get(self, kind, key):
        return self.views.get((kind.gvk(), key))

    def by_index(self, kind, name, value):
        return [each for (gvk, _), each in self.views.items() if gvk == kind.gvk()]


def requests(mapper, event, stores=NO_STORES):
    return list(mapper.requests(event, stores))


def test_an_owner_is_found_by_its_reference():
    child = view("default/web-1", ownerReferences=[owner(Site, "web", "u1")])
    assert requests(Owners(Site, namespaced=True), ObjectEvent("appeared", new=child)) == [request("default/web")]


def test_an_owner_is_found_in_any_version_of_its_reference():
    reference = owner(Site, "web", "u1") | {"apiVersion": "web.test.steersman.dev/v1alpha1"}
    child = view("default/web-1", ownerReferences=[reference])
    assert requests(Owners(Site, namespaced=True), ObjectEvent("vanished", old=child)) == [request("default/web")]


def test_a_cluster_scoped_owner_has_no_namespace():
    child = view("default/web-1", ownerReferences=[owner(Namespace, "team", "u1")])
    assert requests(Owners(Namespace, namespaced=False), ObjectEvent("appeared", new=child)) == [request("team")]


@pytest.mark.parametrize(("any_owner", "found"), [(False, []), (True, [request("default/web")])])
def test_only_the_controlling_owner_counts_unless_any_does(any_owner, found):
    child = view("default/web-1", ownerReferences=[owner(Site, "web", "u1", controller=False)])
    mapper = Owners(Site, namespaced=True, any_owner=any_owner)
    assert requests(mapper, ObjectEvent("appeared", new=child)) == found


def test_owners_of_other_kinds_do_not_count():
    child = view("default/web-1", ownerReferences=[owner(Deployment, "web", "u1")])
    assert requests(Owners(Site, namespaced=True), ObjectEvent("appeared", new=child)) == []


def test_both_the_old_and_the_new_owner_hear_of_an_adoption():
    old = view("default/child", ownerReferences=[owner(Site, "before", "u1")])
    new = view("default/child", ownerReferences=[owner(Site, "after", "u2")])
    found = requests(Owners(Site, namespaced=True), changed(old, new))
    assert found == [request("default/before"), request("default/after")]


POD = view("default/pod", kind=Pod, ownerReferences=[owner(ReplicaSet, "rs", "u-rs")])
SET = view("default/rs", kind=ReplicaSet, uid="u-rs", ownerReferences=[owner(Deployment, "dep", "u-dep")])
DEPLOYMENT = view("default/dep", kind=Deployment, uid="u-dep", ownerReferences=[owner(Site, "web", "u-site")])


def chain():
    return Owners(Site, namespaced=True, through=owners_through(ReplicaSet, Deployment).kinds)


def test_a_chain_of_owners_is_followed():
    assert requests(chain(), ObjectEvent("appeared", new=POD), Shelf(SET, DEPLOYMENT)) == [request("default/web")]


def test_a_successor_in_the_chain_is_not_the_owner():
    """Another ReplicaSet of the same name has another uid."""
    successor = view("default/rs", kind=ReplicaSet, uid="other", ownerReferences=[owner(Deployment, "dep", "u-dep")])
    assert requests(chain(), ObjectEvent("appeared", new=POD), Shelf(successor, DEPLOYMENT)) == []


def test_a_link_that_was_deleted_a_moment_ago_is_remembered():
    """The garbage collector deletes from the top: a Pod vanishes after its ReplicaSet and its Deployment."""
    mapper = chain()
    for link in (DEPLOYMENT, SET):
        mapper.remember_vanished(link)
    assert requests(mapper, ObjectEvent("vanished", old=POD), Shelf()) == [request("default/web")]


def test_the_rest_of_a_chain_shares_the_memory():
    mapper = chain()
    mapper.remember_vanished(DEPLOYMENT)
    rest = mapper.above((Deployment,))
    assert requests(rest, ObjectEvent("appeared", new=SET), Shelf()) == [request("default/web")]


def test_a_function_is_asked_about_both_states_and_may_cross_namespaces():
    def by_label(seen):
        return [Key(seen.labels["to"], "web"), f"{seen.labels['to']}/db", Request(Key("always", "one"), "east")]

    old, new = view(labels={"to": "red"}), view(labels={"to": "blue"})
    found = requests(function_mapper(by_label, "test"), changed(old, new))
    assert found == [
        request("red/web"),
        request("red/db"),
        Request(Key("always", "one"), "east"),
        request("blue/web"),
        request("blue/db"),
    ]


def test_a_function_may_look_things_up():
    def users(seen, stores):
        return [each.key for each in stores.by_index(Site, "secret", seen.key)]

    shelf = Shelf(view("a/one", kind=Site), view("b/two", kind=Site), view("b/pod", kind=Pod))
    found = requests(function_mapper(users, "test"), ObjectEvent("appeared", new=view("x/secret")), shelf)
    assert found == [request("a/one"), request("b/two")]


class Told:
    """A kind that a test tells of, and what was told at the start."""

    def __init__(self, *initial):
        self.initial = initial
        self.handler = None

    @asynccontextmanager
    async def listen(self, handler):
        self.handler = handler
        for each in self.initial:
            handler(ObjectEvent("appeared", new=each, initial=True))
        try:
            yield self
        finally:
            self.handler = None

    async def wait_synced(self):
        await asyncio.sleep(1)


def emitted_by(source, told, *events):
    async def scenario():
        out = []
        started = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(source.run(lambda *emitted: out.append(emitted), started.set))
            await started.wait()
            for event in events:
                told.handler(event)
            task.cancel()
        assert told.handler is None
        return out

    return run_virtual(scenario())[0]


def test_what_was_there_comes_with_low_priority_and_its_cause():
    told = Told(view("a/x", generation=3))
    changes = [changed(view("a/y"), view("a/y", version="2")), changed(view("a/z"), view("a/z"), resync=True)]
    out = emitted_by(KindSource("Site", told, SameObject()), told, *changes)
    assert [(str(request), str(cause), priority) for request, cause, priority in out] == [
        ("a/x", "Site a/x is there (generation 3)", LOW_PRIORITY),
        ("a/y", "Site a/y changed", 0),
        ("a/z", "Site a/z is looked at again", LOW_PRIORITY),
    ]


def test_a_predicate_holds_back():
    told = Told()
    source = KindSource("Site", told, SameObject(), predicate=labels_changed())
    assert emitted_by(source, told, changed(view(), view(version="2"))) == []
    assert (source.statistics().events, source.statistics().filtered) == (1, 1)


def test_a_failing_predicate_lets_the_event_pass(caplog):
    told = Told()
    source = KindSource("Site", told, SameObject(), predicate=when(lambda event: event.nonsense))
    assert len(emitted_by(source, told, changed(view(), view()))) == 1
    assert source.statistics().failures == 1
    assert "predicate on <Site default/web changed>" in caplog.text


def test_a_failing_mapper_is_an_error_of_its_object_alone(caplog):
    def fragile(seen):
        return [seen.labels["to"]]

    told = Told()
    source = KindSource("Site", told, function_mapper(fragile, "test"))
    good = ObjectEvent("appeared", new=view("a/good", labels={"to": "a/target"}))
    out = emitted_by(source, told, ObjectEvent("appeared", new=view("a/bad")), good)
    assert [str(request) for request, _, _ in out] == ["a/target"]
    assert "KeyError" in source.statistics().last_failure
    assert "a/bad" in caplog.text


def test_the_error_of_a_mapper_that_returns_an_object_asks_for_its_key():
    """`stores.list` returns objects, so this is the first thing that one writes."""
    mapper = function_mapper(lambda secret: [view("default/web")], "test")
    with pytest.raises(TypeError, match=r"is not a target; return its key: write \.key after it"):
        requests(mapper, ObjectEvent("appeared", new=view("default/a")))
