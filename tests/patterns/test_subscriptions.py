"""Owners that wait for objects that do not name them: none is lost, and none stays behind."""

from steersman.kinds.core_v1 import ConfigMap
from steersman.objects import Key
from steersman.patterns.children import ChildIdentity
from steersman.patterns.children.subscriptions import Subscriptions

PAGES = ConfigMap.gvk().group_kind


def page(number: int) -> ChildIdentity:
    return ChildIdentity(PAGES, Key("default", f"page-{number}"))


def owner(number: int) -> Key:
    return Key("default", f"site-{number}")


def test_the_first_of_very_many_is_still_woken():
    """Beyond a limit, a change of the oldest shared children would be lost without a word."""
    waits = Subscriptions()
    for number in range(12_000):
        waits.replace(owner(number), "", {page(number)})
    assert [each for number in range(12_000) for each in waits.owners(page(number))] == [*map(owner, range(12_000))]
    for number in range(12_000):
        waits.forget(owner(number))
    assert len(waits) == 0


def test_one_owner_with_very_many_shared_children():
    waits = Subscriptions()
    for number in range(12_000):
        waits.add(owner(0), "", page(number))
    assert all(waits.owners(page(number)) == (owner(0),) for number in range(12_000))
    waits.replace(owner(0), "", {page(11_999)})
    assert len(waits) == 1


def test_each_reconcile_of_a_state_replaces_what_the_state_waited_for():
    waits = Subscriptions()
    waits.replace(owner(1), "first", {page(1), page(2)})
    waits.replace(owner(1), "second", {page(2)})
    waits.replace(owner(2), "first", {page(2)})
    assert waits.owners(page(2)) == (owner(1), owner(2))
    waits.replace(owner(1), "first", set())
    assert (waits.owners(page(1)), waits.owners(page(2))) == ((), (owner(1), owner(2)))
    waits.forget(owner(1))
    waits.forget(owner(1))
    assert waits.owners(page(2)) == (owner(2),)
