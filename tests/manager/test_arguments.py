"""A manager whose arguments are not what it takes says what to write."""

from datetime import timedelta

import pytest

from steersman import Endpoints, LeaderElection, Manager, RequeueAfter
from steersman.kinds.core_v1 import Pod, Secret

MISTAKES = [
    pytest.param(lambda: Manager("ship"), "Manager(name='ship')", id="a name for the client"),
    pytest.param(lambda: Manager(5), "run() connects by itself", id="no client"),
    pytest.param(lambda: Manager(name=5), 'name="site-operator"', id="no name"),
    pytest.param(lambda: Manager(name="x", leader=True), 'leader=LeaderElection("x")', id="leader=True"),
    pytest.param(lambda: Manager(leader="lease"), 'LeaderElection("lease")', id="leader is a string"),
    pytest.param(lambda: Manager(leader=False), "leave leader out", id="leader=False"),
    pytest.param(lambda: Manager(endpoints=8081), "Endpoints(port=8081)", id="a port"),
    pytest.param(lambda: Manager(endpoints=True), "Endpoints(port=8080)", id="endpoints=True"),
    pytest.param(lambda: Manager(endpoints=False), "leave endpoints out", id="endpoints=False"),
    pytest.param(lambda: Manager(grace=timedelta(minutes=1)), "grace=60", id="grace is a timedelta"),
    pytest.param(lambda: Manager(watchdog=True), "such as watchdog=30", id="watchdog=True"),
    pytest.param(lambda: Manager(namespaces="shop"), "namespaces=('shop',)", id="one namespace"),
    pytest.param(lambda: Manager(kinds=[Pod]), "kinds={Pod: KindOptions", id="kinds is a list"),
    pytest.param(lambda: Manager(kinds={Pod: None}), "Pod: KindOptions(...)", id="no options"),
    pytest.param(lambda: Manager(uncached=Secret), "uncached=[Secret]", id="one kind"),
    pytest.param(lambda: RequeueAfter(timedelta(minutes=2)), "RequeueAfter(120)", id="a timedelta"),
    pytest.param(lambda: RequeueAfter("30"), "such as RequeueAfter(30)", id="seconds in a string"),
    pytest.param(lambda: RequeueAfter(None), "such as RequeueAfter(30)", id="no seconds"),
]


@pytest.mark.parametrize(("make", "words"), MISTAKES)
def test_a_mistake_says_what_to_write(make, words):
    with pytest.raises(TypeError) as raised:
        make()
    assert words in str(raised.value)


def test_what_it_says_works():
    manager = Manager(name="x", leader=LeaderElection("x"), endpoints=Endpoints(port=8080), grace=1, uncached=[Secret])
    assert manager.name == "x"
