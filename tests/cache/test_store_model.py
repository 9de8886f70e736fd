"""The store and its indexes against a plain dict."""

import time  # noqa: TID251 - the CPU time of a lookup
from collections import Counter

from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from steersman.cache import Store, StoredObject
from steersman.objects import Key, Selector

NAMESPACES = ["x", "y"]
keys = st.builds(Key, st.sampled_from(NAMESPACES), st.sampled_from("abcd"))
labels = st.dictionaries(st.sampled_from(["app", "tier"]), st.sampled_from(["1", "2"]), max_size=2)
owners = st.lists(st.sampled_from(["u1", "u2", "u3"]), max_size=2, unique=True).map(tuple)
values = st.lists(st.integers(0, 3), max_size=3)
selectors = st.sampled_from(
    ["", "app=1", "app=2,tier=1", "tier in (1)", "tier in (1,2)", "!app", "app!=1", "app=1,app=2"]
)

steps = Counter()


class StoreMachine(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.store = Store()
        self.model = {}
        self.values = {}
        self.version = 0
        self.indexed = False

    def _values_of(self, stored):
        return self.values[stored.resource_version]

    @rule(key=keys, labels=labels, owners=owners, values=values, deleting=st.booleans())
    def put(self, key, labels, owners, values, deleting):
        self.version += 1
        version = str(self.version)
        stored = StoredObject(key, version, b"{}", own_labels=labels or None, owners=owners, deleting=deleting)
        self.values[stored.resource_version] = values
        assert self.store.put(stored) is self.model.get(key)
        self.model[key] = stored

    @rule(key=keys)
    def remove(self, key):
        assert self.store.remove(key) is self.model.pop(key, None)

    @rule()
    def declare_an_index(self):
        if not self.indexed:
            self.store.add_index("value", self._values_of)
            self.indexed = True

    def _same(self, found, expected):
        found = list(found)
        assert {each.key: each for each in found} == {each.key: each for each in expected}
        assert len(found) == len({each.key for each in found})

    @rule(value=st.integers(0, 3))
    def by_index(self, value):
        if self.indexed:
            expected = [each for each in self.model.values() if value in self._values_of(each)]
            self._same(self.store.by_index("value", value), expected)

    @rule(uid=st.sampled_from(["u1", "u2", "u3"]))
    def by_owner(self, uid):
        self._same(self.store.by_owner(uid), [each for each in self.model.values() if uid in each.owners])

    @rule()
    def deleting(self):
        self._same(self.store.deleting(), [each for each in self.model.values() if each.deleting])

    @rule(namespace=st.sampled_from(["", *NAMESPACES]), text=selectors)
    def select(self, namespace, text):
        selector = Selector.parse(text)
        expected = [
            each
            for each in self.model.values()
            if (not namespace or each.key.namespace == namespace) and selector.matches(each.labels)
        ]
        self._same(self.store.list(namespace=namespace, labels=selector), expected)

    @invariant()
    def is_a_step(self):
        steps["taken"] += 1


def test_the_store_does_what_a_dict_does():
    run_state_machine_as_test(StoreMachine, settings=settings(max_examples=100, stateful_step_count=40, deadline=None))
    assert steps["taken"] >= 2_500


def seconds_of_lists(sizes, namespace, selector):
    """The CPU time of some lists in a store with so many objects by namespace and label."""
    store, labels = Store(), Selector.parse(selector)
    for (where, app), size in sizes.items():
        for number in range(size):
            key = Key(where, f"{app}-{number}")
            store.put(StoredObject(key=key, resource_version="1", raw=b"{}", own_labels={"app": app}, owners=()))
    assert len(store.list(namespace=namespace, labels=labels)) == 100  # builds the index
    began = time.thread_time()
    for _ in range(100):
        store.list(namespace=namespace, labels=labels)
    return time.thread_time() - began


def test_a_list_by_label_in_a_namespace_costs_as_much_as_its_result():
    """Neither other namespaces with the label nor other objects of the namespace are walked."""
    alone = seconds_of_lists({("x", "web"): 100}, "x", "app=web")
    elsewhere = seconds_of_lists({("x", "web"): 100, ("y", "web"): 20_000}, "x", "app=web")
    beside = seconds_of_lists({("x", "web"): 100, ("x", "db"): 20_000}, "x", "app=web")
    assert max(elsewhere, beside) < 10 * alone
