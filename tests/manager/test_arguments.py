"""A manager whose arguments are not what it takes says what to write."""

from datetime import timedelta

import pytest

from samples.site import Site, SiteSpec
from steersman import Done, HttpEndpoints, LeaderElection, Manager, RequeueAfter, Resource, generates
from steersman.cache import KindOptions, as_selector
from steersman.controller import ControllerOptions
from steersman.kinds.core_v1 import Pod, Secret
from steersman.manager import Shards


async def _wait(pod):
    return [pod.spec.node_name]


def _no_operator(site):
    return []


@generates(Site, children=(Secret,))
def _sites(site):
    return []


async def _reconcile(ctx, request):
    return Done()


MISTAKES = [
    pytest.param(lambda: Manager("ship"), "Manager(name='ship')", id="a name for the client"),
    pytest.param(lambda: Manager(5), "run() connects by itself", id="no client"),
    pytest.param(lambda: Manager(name=5), 'name="site-operator"', id="no name"),
    pytest.param(lambda: Manager(name="x", leader=True), 'leader=LeaderElection("x")', id="leader=True"),
    pytest.param(lambda: Manager(shards="x"), 'shards=Shards("my-operator")', id="shards is a string"),
    pytest.param(
        lambda: Manager(leader=LeaderElection("x"), shards=Shards("y")), 'Shards("x")', id="leader and shards"
    ),
    pytest.param(lambda: Manager(shards=Shards("")), "needs a name", id="shards without a name"),
    pytest.param(
        lambda: Manager(shards=Shards("x"), namespaces=["a"]), "leave namespaces out", id="shards and namespaces"
    ),
    pytest.param(lambda: Shards("x", same_namespace=Secret), "pass a list of kinds", id="one kind instead of a list"),
    pytest.param(lambda: Shards("x", identity="Pod_1"), "use lower-case letters", id="no name of a Lease"),
    pytest.param(lambda: Manager(leader="lease"), 'LeaderElection("lease")', id="leader is a string"),
    pytest.param(lambda: Manager(leader=False), "write leader=None", id="leader=False"),
    pytest.param(lambda: Manager(endpoints=8081), "HttpEndpoints(port=8081)", id="a port"),
    pytest.param(lambda: Manager(endpoints=True), "HttpEndpoints(port=8080)", id="endpoints=True"),
    pytest.param(lambda: Manager(endpoints=False), "leave endpoints out", id="endpoints=False"),
    pytest.param(lambda: Manager(grace=timedelta(minutes=1)), "grace=60", id="grace is a timedelta"),
    pytest.param(lambda: Manager(watchdog=True), "such as watchdog=30", id="watchdog=True"),
    pytest.param(lambda: Manager(namespaces="shop"), "namespaces=('shop',)", id="one namespace"),
    pytest.param(lambda: Manager(kinds=[Pod]), "kinds={Pod: KindOptions", id="kinds is a list"),
    pytest.param(lambda: Manager(kinds={Pod: None}), "Pod: KindOptions(...)", id="no options"),
    pytest.param(lambda: Manager(kinds={"Pod": KindOptions()}), "'Pod' is not a kind", id="the name of a kind"),
    pytest.param(lambda: KindOptions(labels="app=web"), "Selector.parse('app=web')", id="labels in a string"),
    pytest.param(lambda: KindOptions(labels={"app": "web"}), "Selector.of({'app': 'web'})", id="labels in a dict"),
    pytest.param(lambda: KindOptions(fields="a=b"), "FieldSelector.parse(...)", id="fields in a string"),
    pytest.param(lambda: KindOptions(namespaces="shop"), "namespaces=('shop',)", id="one namespace of a kind"),
    pytest.param(lambda: Manager().index(Pod, "node", "spec.nodeName"), "lambda pod: [...]", id="a path for an index"),
    pytest.param(lambda: Manager().index(Pod, "node", _wait), "def, not async def", id="an index that waits"),
    pytest.param(lambda: Manager().index("Pod", "node", len), "'Pod' is not a kind", id="an index of a string"),
    pytest.param(lambda: Manager().add(_no_operator), "@generates(KIND, children=(...))", id="a plain function"),
    pytest.param(lambda: Manager().add(5), "a StateMachine or a webhook", id="no operator at all"),
    pytest.param(lambda: Resource[SiteSpec], "write Resource[SiteSpec, Status]", id="a resource without a status"),
    pytest.param(lambda: ControllerOptions(concurrency="4"), "such as concurrency=4", id="concurrency in a string"),
    pytest.param(lambda: ControllerOptions(concurrency=2.5), "such as concurrency=4", id="concurrency in parts"),
    pytest.param(lambda: ControllerOptions(timeout="5"), "such as timeout=60", id="a timeout in a string"),
    pytest.param(lambda: ControllerOptions(resync="1h"), "such as resync=60", id="a resync in a string"),
    pytest.param(lambda: as_selector(["app=web"]), 'write "app=web"', id="labels in a list, for the cache"),
    pytest.param(lambda: Manager(uncached=Secret), "uncached=[Secret]", id="one kind"),
    pytest.param(lambda: RequeueAfter(timedelta(minutes=2)), "RequeueAfter(120)", id="a timedelta"),
    pytest.param(lambda: RequeueAfter("30"), "such as RequeueAfter(30)", id="seconds in a string"),
    pytest.param(lambda: RequeueAfter(None), "such as RequeueAfter(30)", id="no seconds"),
]


@pytest.mark.parametrize("name", ["a" * 93, "two\nlines"])
def test_a_name_that_no_server_accepts_is_refused_at_once(name):
    """It becomes the field manager of every apply."""
    with pytest.raises(ValueError, match="at most 92 printable characters"):
        Manager(name=name)


@pytest.mark.parametrize(("make", "words"), MISTAKES)
def test_a_mistake_says_what_to_write(make, words):
    with pytest.raises((TypeError, ValueError)) as raised:
        make()
    assert words in str(raised.value)


def test_what_it_says_works():
    manager = Manager(
        name="x", leader=LeaderElection("x"), endpoints=HttpEndpoints(port=8080), grace=1, uncached=[Secret]
    )
    assert manager.name == "x"


UNCACHED = [
    pytest.param(lambda manager: manager.add(_sites), "controller site has children of kind Secret", id="a child"),
    pytest.param(
        lambda manager: manager.controller(Site).watches(Secret, map=lambda view: []).run_with(_reconcile),
        "controller site watches Secret",
        id="a watched kind",
    ),
    pytest.param(
        lambda manager: manager.controller(Secret).run_with(_reconcile),
        "controller secret reconciles Secret",
        id="the reconciled kind",
    ),
]


def test_a_pod_gets_time_for_the_grace_period_cancelled_work_and_threads():
    """The kubelet kills a container before its Lease is released if the Pod has less."""
    assert Manager().termination_seconds == 40
    assert Manager(grace=2.5).termination_seconds == 13


@pytest.mark.parametrize(("add", "words"), UNCACHED)
def test_a_watched_kind_outside_the_cache_is_refused_when_it_is_added(add, words):
    """Otherwise the program ends a moment after its start, with a traceback of other people's code."""
    with pytest.raises(ValueError, match="no change of one would reach it") as raised:
        add(Manager(name="x", uncached=[Secret]))
    assert words in str(raised.value)
    assert "remove Secret from uncached=" in str(raised.value)
