"""The overlay against a model: a history of one kind, a store that lags behind it, answers that come when they like."""

from collections import Counter

from hypothesis import settings, strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from samples import portions
from steersman.cache import Overlay, StoredObject
from steersman.objects import Key

KEYS = [Key("ns", name) for name in "ab"]
keys = st.sampled_from(KEYS)


def stored(key, uid, version):
    return StoredObject(key=key, resource_version=str(version), raw=b"{}", uid=uid)


steps = Counter()


class OverlayMachine(RuleBasedStateMachine):
    """Writes of ours and of others happen on the server; their echoes and our answers arrive in any order."""

    def __init__(self):
        super().__init__()
        self.overlay = Overlay()
        self.version = 10
        self.uids = 0
        #: key -> all its states: (version it began at, uid or None)
        self.history = {key: [(0, None)] for key in KEYS}
        self.log = []
        self.store = {}
        self.shown = 0
        self.answers = []
        #: key -> the version of our newest write whose answer has arrived
        self.floor = dict.fromkeys(KEYS, 0)
        self.doubtful = {}
        self.last_seen = dict.fromkeys(KEYS, 0)

    @initialize()
    def begin(self):
        self.overlay.reached(str(self.version))

    def _happen(self, key, uid):
        self.version += 1
        self.history[key].append((self.version, uid))
        self.log.append((self.version, key, uid))

    def _uid(self, key):
        return self.history[key][-1][1]

    @rule(key=keys, ours=st.booleans())
    def write(self, key, ours):
        uid = self._uid(key)
        if uid is None:
            self.uids += 1
            uid = f"uid-{self.uids}"
        self._happen(key, uid)
        if ours:
            self.answers.append((key, uid, self.version, "write"))

    @rule(key=keys, ours=st.booleans())
    def delete(self, key, ours):
        uid = self._uid(key)
        if uid is None:
            return
        self._happen(key, None)
        if ours:
            self.answers.append((key, uid, self.version, "delete"))

    @rule(key=keys, deletes=st.lists(st.booleans(), min_size=2, max_size=4))
    def many_writes_of_ours(self, key, deletes):
        for each in deletes:
            (self.delete if each else self.write)(key, ours=True)

    @precondition(lambda self: len(self.answers) > 1)
    @rule(data=st.data())
    def answers_arrive_in_any_order(self, data):
        self.answers = data.draw(st.permutations(self.answers))
        while self.answers:
            self._answer_arrives(self.answers.pop())

    @precondition(lambda self: self.answers)
    @rule(data=st.data())
    def answer_arrives(self, data):
        self._answer_arrives(self.answers.pop(data.draw(st.integers(0, len(self.answers) - 1))))

    def _answer_arrives(self, answer):
        key, uid, version, what = answer
        if what == "write":
            self.overlay.record_write(stored(key, uid, version))
        else:
            self.overlay.record_delete(key, uid, base=self.store.get(key))
        if self.overlay.doubts(key):
            self.doubtful[key] = max(version, self.doubtful.get(key, 0))
        self.floor[key] = max(self.floor[key], version)

    @precondition(lambda self: self.answers)
    @rule(data=st.data())
    def answer_is_lost(self, data):
        key, _, version, _ = self.answers.pop(data.draw(st.integers(0, len(self.answers) - 1)))
        self.overlay.record_unknown(key)
        self.doubtful[key] = max(version, self.doubtful.get(key, 0))

    @rule(count=st.integers(1, 5))
    def watch_shows(self, count):
        for version, key, uid in self.log[self.shown : self.shown + count]:
            self.shown += 1
            if uid is None:
                self.overlay.vanished(self.store.pop(key).uid)
            else:
                self.store[key] = stored(key, uid, version)
            self.overlay.reached(str(version))

    @rule()
    def list_shows_everything(self):
        """A relist: what is missing vanishes, the rest is as it is now."""
        for key in list(self.store):
            if self._uid(key) != self.store[key].uid:
                self.overlay.vanished(self.store.pop(key).uid)
        for key in KEYS:
            version, uid = self.history[key][-1]
            if uid is not None:
                self.store[key] = stored(key, uid, version)
        self.shown = len(self.log)
        self.overlay.reached(str(self.version))

    def _interval(self, key, seen):
        """When what is seen was so, the latest time if there are several: from its version to the next."""
        states = self.history[key]
        for position in range(len(states) - 1, -1, -1):
            version, uid = states[position]
            if (uid is None) == (seen is None) and (seen is None or seen.resource_version == str(version)):
                end = states[position + 1][0] if position + 1 < len(states) else float("inf")
                return version, end
        raise AssertionError(f"{key} never was {seen}")

    def _look(self, key):
        base = self.store.get(key)
        if self.overlay.needs_live(key, base):
            assert key in self.doubtful
            doubts = self.overlay.doubts(key)
            version, uid = self.history[key][-1]
            if uid is None:
                self.overlay.record_absent(key, str(self.version), doubts=doubts, base=base)
            else:
                self.overlay.record_read(stored(key, uid, version), doubts=doubts)
            self.floor[key] = max(self.floor[key], version)
        self.doubtful.pop(key, None)
        return self.overlay.visible(key, base)

    @rule(key=keys)
    def read(self, key):
        seen = self._look(key)
        begin, end = self._interval(key, seen)
        assert end > self.floor[key], f"{key}: saw {seen}, which ended at {end}, before our write at {self.floor[key]}"
        assert end > self.last_seen[key], f"{key}: saw {seen} after something newer"
        # an absence may have several times, so only a state that is there moves the mark
        if seen is not None:
            self.last_seen[key] = max(self.last_seen[key], begin)

    @invariant()
    def nothing_older_than_our_own_writes_is_visible(self):
        for key in KEYS:
            base = self.store.get(key)
            if not self.overlay.needs_live(key, base):
                _, end = self._interval(key, self.overlay.visible(key, base))
                assert end > self.floor[key]

    @invariant()
    def a_store_that_caught_up_tells_the_truth(self):
        if self.shown == len(self.log) and not self.answers:
            for key in KEYS:
                if key not in self.doubtful:
                    seen = self.overlay.visible(key, self.store.get(key))
                    assert (seen.uid if seen else None) == self._uid(key)

    @invariant()
    def nothing_is_kept_that_the_store_knows(self):
        if self.shown == len(self.log) and not self.doubtful:
            assert len(self.overlay) == 0

    @invariant()
    def what_is_untouched_is_the_store(self):
        for key in KEYS:
            if not self.overlay.touches(key):
                assert self.overlay.visible(key, self.store.get(key)) is self.store.get(key)

    @invariant()
    def is_a_step(self):
        steps["taken"] += 1


EXAMPLES = portions.count(sample=80, of=250)


def test_readers_see_what_the_model_says():
    run_state_machine_as_test(
        OverlayMachine, settings=settings(max_examples=EXAMPLES, stateful_step_count=40, deadline=None)
    )
    assert steps["taken"] >= 24 * EXAMPLES
