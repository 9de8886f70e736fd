"""What a handler gets, against a model without buffers: it only compares the delivered states with the real ones."""

import asyncio
import logging
from collections import Counter

from hypothesis import HealthCheck, Phase, seed, settings, strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from samples import portions
from steersman.aio import Supervisor
from steersman.cache import Store, StoredObject, StoredView, delivery, disposal
from steersman.cache.delivery import HandlerRegistration
from steersman.cache.disposal import Disposal, Noted
from steersman.kinds.core_v1 import ConfigMap
from steersman.objects import Key

KEYS = [Key("default", name) for name in "abcd"]
keys = st.sampled_from(KEYS)
#: which object, whether it is gone, whether a watch said so by itself
changes = st.lists(
    st.tuples(keys, st.sampled_from([False, False, True]), st.sampled_from([True, True, False])), min_size=1, max_size=5
)
counted = Counter()


class HandlerMachine(RuleBasedStateMachine):
    """The world is a store; ``told`` is what the handler would believe of it, ``since`` what happened after that."""

    runner: asyncio.Runner

    def __init__(self):
        super().__init__()
        self.store = Store()
        self.versions = 0
        self.told = {}  # key -> the state the handler was told last
        self.since = {}  # key -> [whether each change since then was a frame of its own]
        self.been = {}  # key -> every state in which a reader could see it since then
        self.heard = {}  # key -> states that the handler was shown since then
        self.finals = set()  # versions that the watch showed as the last ones
        self.initial = set()  # keys that were there at the start and were not told yet
        self.again = set()  # keys to be shown although nothing changed
        self.failing = False
        self.started = False
        self.removed = False
        self.calls = 0
        self.problem = None
        self.disposal = Disposal()
        self.registration = self.runner.run(self._registered())

    def present(self):
        return Noted(dict(self.store.by_key()), self.disposal)

    async def _registered(self):
        return HandlerRegistration(
            self.handle,
            current=self.store.get,
            view=lambda stored: StoredView(stored, ConfigMap.gvk(), lambda each: each),
            remove=lambda registration: None,
            resync=None,
        )

    def teardown(self):
        if not self.removed:
            self.deliver(100)
            self.bounded_and_consistent()
            assert {key: state.resource_version for key, state in self.told.items() if self.started} == {
                stored.key: stored.resource_version for stored in self.store if self.started
            }

    # the handler

    def handle(self, notification):
        """A failed check is kept for `bounded_and_consistent`: what a handler raises is its own."""
        try:
            self._check(notification)
        except AssertionError as error:
            self.problem = error
        if self.failing:
            self.failing = False
            raise ValueError("planned")

    def _check(self, notification):
        assert self.started
        assert not self.removed
        self.calls += 1
        key = notification.key
        counted[notification.type] += 1
        counted["passed"] += bool(notification.passed)
        assert len(notification.passed) <= delivery.PASSED_LIMIT
        self.heard.setdefault(key, set()).update(each.resource_version for each in notification.states)
        old, new = notification.old, notification.new
        match notification.type:
            case "appeared":
                assert key not in self.told
                assert notification.initial == (key in self.initial)
                if new.stored is self.store.get(key):
                    assert notification.unbroken == self._is_one_frame(key)
                    counted["unbroken"] += notification.unbroken
                    self._settle(key)
                else:
                    # it is gone already: that follows
                    assert not notification.unbroken
                    assert new.resource_version in self.been[key]
                    self.told[key] = new.stored
                    counted["came and went"] += 1
            case "changed":
                assert old.stored is self.told[key]
                assert new.stored is self.store.get(key)
                assert old.uid == new.uid
                assert notification.resync == (old.resource_version == new.resource_version)
                if notification.resync:
                    assert key in self.again
                    counted["resync"] += 1
                else:
                    counted["coalesced"] += len(self.since[key]) > 1
                assert notification.unbroken == self._is_one_frame(key)
                counted["unbroken"] += notification.unbroken
                self._settle(key)
            case "vanished":
                before, now = self.told.pop(key), self.store.get(key)
                assert old.uid == before.uid
                assert now is None or now.uid != before.uid
                assert notification.unbroken == (self._is_one_frame(key) and now is None)
                if notification.certain:
                    assert old.resource_version in self.finals
                # another object of the name may follow, and stands for more than one frame
                self.since[key].append(False)
                if now is None and not self._is_more_to_tell(key):
                    self._settle(key)

    def _is_more_to_tell(self, key):
        return not set(self.been.get(key, [])[-delivery.PASSED_LIMIT :]) <= self.heard[key]

    def _is_one_frame(self, key):
        return self.since.get(key) == [True] and key not in self.initial

    def _settle(self, key):
        """The handler got every object, and every state that a reader could have seen, as far back as is kept."""
        now = self.store.get(key)
        been, heard = self.been.pop(key, []), self.heard.pop(key, set())
        assert set(been[-delivery.PASSED_LIMIT :]) <= heard
        counted["forgotten"] += not set(been) <= heard
        if now is None:
            self.told.pop(key, None)
        else:
            self.told[key] = now
        self.since.pop(key, None)
        self.initial.discard(key)
        self.again.discard(key)

    # the world

    def _changed(self, key, *, framed):
        if self.started:
            self.since.setdefault(key, []).append(framed)

    @precondition(lambda self: not self.removed)
    @rule(key=keys, times=st.sampled_from([3, 20]))
    def happen_often(self, key, times):
        for _ in range(times):
            self.put(key, framed=True)

    @precondition(lambda self: not self.removed)
    @rule(changes=changes)
    def happen(self, changes):
        for key, gone, framed in changes:
            (self.remove if gone else self.put)(key, framed=framed)

    def put(self, key, *, framed):
        self.versions += 1
        old = self.store.get(key)
        uid = old.uid if old is not None else f"u{self.versions}"
        stored = StoredObject(key=key, resource_version=str(self.versions), raw=b"{}", uid=uid)
        self.store.put(stored)
        if self.started:
            self.been.setdefault(key, []).append(stored.resource_version)
        self._changed(key, framed=framed)
        self.registration.note(key, old, framed=framed)

    def remove(self, key, *, framed):
        old = self.store.remove(key)
        if old is None:
            return
        self.versions += 1
        last = StoredObject(key=key, resource_version=str(self.versions), raw=b"{}", uid=old.uid)
        if framed:
            self.finals.add(last.resource_version)
        if framed and self.started:
            # it shows the last state once more, under a version of its own
            self.been[key] = [*self.been.get(key, [])[:-1], last.resource_version]
        self._changed(key, framed=framed)
        self.registration.note(key, old, framed=framed, last=last if framed else None)

    @precondition(lambda self: self.started and not self.removed)
    @rule(changes=st.dictionaries(keys, st.booleans(), min_size=1))
    def relist(self, changes):
        """A list shows the changes of several keys at once: they are reported together."""
        olds = {}
        for key, gone in changes.items():
            old = self.store.remove(key) if gone else self.store.get(key)
            if gone and old is None:
                continue
            self.versions += 1
            olds[key] = old
            if not gone:
                uid = old.uid if old is not None and self.versions % 2 else f"u{self.versions}"
                stored = StoredObject(key=key, resource_version=str(self.versions), raw=b"{}", uid=uid)
                self.store.put(stored)
                self.been.setdefault(key, []).append(stored.resource_version)
            self._changed(key, framed=False)
        self.registration.note_all(Noted(olds, self.disposal))
        counted["relists"] += 1

    @initialize(present=st.sets(keys), started=st.sampled_from([True, True, False]))
    def begin(self, present, started):
        for key in sorted(present):
            self.put(key, framed=True)
        if started:
            self.start()

    @precondition(lambda self: not self.removed)
    @rule()
    def start(self):
        """A list is complete: also a second time, after which nothing is initial."""
        self.registration.start(self.present())
        if not self.started:
            self.started = True
            self.initial = set(self.store.keys())
            self.been = {stored.key: [stored.resource_version] for stored in self.store}

    @precondition(lambda self: not self.removed)
    @rule()
    def show_again(self):
        """A resync; before the first list is complete, the handler knows no object to show again."""
        if self.started:
            unchanged = {each.key for each in self.store if each.key not in self.since}
            self.again |= unchanged - self.initial
        self.registration.note_again(self.present())

    @rule()
    def fail_next(self):
        self.failing = True

    @precondition(lambda self: not self.removed)
    @rule(turns=st.sampled_from([1, 1, 2, 100]))
    def deliver(self, turns):
        """Let the handler be called for a while: two keys a turn."""
        self.runner.run(self._deliver(turns))
        for key in [*self.since, *self.initial]:
            if not self.registration.waits(key):
                raise self.problem or AssertionError(f"{key} was not told in full")
        if turns == 100 and self.started:
            assert self.registration.pending == 0
            assert (self.since, self.initial, self.again) == ({}, set(), set())

    async def _deliver(self, turns):
        async with Supervisor() as tasks:
            tasks.start(self.registration.deliver(), name="handler")
            for _ in range(turns):
                await asyncio.sleep(0)
                if not self.registration.pending:
                    break
            tasks.cancel()

    @precondition(lambda self: self.calls > 30)
    @rule()
    def remove_handler(self):
        self.registration.remove()
        self.removed = True

    @invariant()
    def bounded_and_consistent(self):
        counted["steps"] += 1
        if self.problem is not None:
            raise self.problem
        assert self.registration.pending <= len(KEYS)
        assert self.registration.delivered == self.calls
        if not self.started:
            assert not self.registration.synced
        elif self.registration.synced:
            assert not self.initial


def test_a_handler_gets_what_the_model_says(monkeypatch, caplog):
    """However changes, removals, restarts and failures fall between two calls of a handler."""
    caplog.set_level(logging.CRITICAL, logger="steersman.cache")
    monkeypatch.setattr(delivery, "_BATCH", 2)
    monkeypatch.setattr(delivery, "_BATCHES_MAX", 2)
    monkeypatch.setattr(disposal, "PORTION", 1)
    with asyncio.Runner() as HandlerMachine.runner:
        run_state_machine_as_test(
            seed(portions.seed_of("handlers"))(HandlerMachine),
            settings=settings(
                max_examples=portions.count(sample=250, of=2_500),
                stateful_step_count=40,
                deadline=None,
                database=None,
                # shrinking takes minutes, longer than a test may
                phases=list(Phase) if portions.ALL else [Phase.generate],
                suppress_health_check=list(HealthCheck),
            ),
        )
    assert counted["steps"] >= 5_000
    # Each of these occurred.
    kinds = (
        "appeared",
        "changed",
        "vanished",
        "resync",
        "coalesced",
        "unbroken",
        "passed",
        "came and went",
        "forgotten",
    )
    assert all(counted[each] for each in kinds), counted
