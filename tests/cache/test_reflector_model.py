"""The reflector's step against a model of a server: versions, history, compaction, backups, and every way to fail."""

from collections import Counter, deque

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
from steersman.cache import Settings, StoredObject, reflector
from steersman.cache.reflector import Mark, Put, Remove, State, Stepper
from steersman.objects import Key

NAMES = ["a", "b", "c"]
names = st.sampled_from(NAMES)
reasons = st.sampled_from(["expired", "unsupported", "throttled", "not_served", "lost", "refused"])
QUESTIONS = (reflector.List, reflector.Probe, reflector.Open, reflector.Sleep)


def stored(name, version):
    return StoredObject(key=Key("", name), resource_version=str(version), raw=b"{}", uid=name)


class Dice:
    """Chance without surprise."""

    def __init__(self):
        self._value = 0.5

    def random(self):
        self._value = (self._value * 16807 + 0.1) % 1
        return self._value


class Stream:
    """An open stream of the server: frames that wait to be read."""

    def __init__(self, frames, position):
        self.frames = deque(frames)
        self.position = position


steps = Counter()


class ReflectorMachine(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.version = 10
        self.objects = {}
        self.snapshots = {(0, 10): {}}
        self.log = []
        self.compacted = 0
        self.epoch = 0
        self.restored = False

        self.stepper = Stepper(Settings(page=2))
        self.state = State()
        self.rng = Dice()
        self.now = 0.0
        self.question = None
        self.stream = None
        self.staged = {}
        self.pages = []
        self.listed_at = 0
        self.mirror = None
        self.mirror_at = None
        self.asked = []

    # the reflector

    def _step(self, given):
        self.state, commands = self.stepper.step(self.state, given, now=self.now, rng=self.rng)
        self.question = None
        assert all(not isinstance(command, QUESTIONS) for command in commands[:-1])
        for command in commands:
            self._perform(command)
        assert (self.question is None) == (self.stream is not None), "waits for nothing, or for two things"

    def _perform(self, command):
        match command:
            case reflector.Stage(changes):
                self._change(self.staged, changes)
            case reflector.Discard():
                self.staged = {}
            case reflector.Commit(version, new_epoch):
                assert new_epoch == (self.mirror_at is not None and int(version) < self.mirror_at[1])
                self.mirror, self.staged = self.staged, {}
                self.mirror_at = (self.epoch, int(version))
                self.restored = False
            case tuple():
                self._change(self.mirror, command)
                self.mirror_at = (self.mirror_at[0], int(self.state.version))
            case reflector.Empty():
                assert self.mirror is not None
                self.mirror = self.mirror_at = None
            case reflector.Close():
                self.stream = None
            case reflector.Sleep():
                self.question = command
            case _:
                self.stream = None
                self.question = command
                if not (isinstance(command, reflector.List) and command.continue_):
                    self.asked.append(self.now)

    @staticmethod
    def _change(objects, changes):
        for change in changes:
            match change:
                case Put(each):
                    objects[each.key.name] = int(each.resource_version)
                case Remove(each):
                    objects.pop(each.key.name, None)

    @initialize()
    def begin(self):
        self._step(reflector.Begin())

    # the server

    def _happen(self, frame):
        self.log.append((self.version, frame))
        self.snapshots[self.epoch, self.version] = dict(self.objects)
        if self.stream is not None:
            self.stream.frames.append(frame)

    @precondition(lambda self: not self.restored)
    @rule(name=names)
    def write(self, name):
        self.version += 1
        self.objects[name] = self.version
        self._happen(Put(stored(name, self.version)))

    @precondition(lambda self: not self.restored and self.objects)
    @rule(data=st.data())
    def delete(self, data):
        name = data.draw(st.sampled_from(sorted(self.objects)))
        self.version += 1
        del self.objects[name]
        self._happen(Remove(stored(name, self.version)))

    @rule()
    def compact(self):
        self.compacted = self.version

    @precondition(lambda self: len(self.log) > 0 and not self.restored)
    @rule(data=st.data())
    def restore(self, data):
        """A backup is restored: all watches end, and later versions never were. Nothing is written for a while."""
        self.version = data.draw(st.sampled_from(sorted(at for epoch, at in self.snapshots if epoch == self.epoch)))
        objects = self.snapshots[self.epoch, self.version]
        self.objects = dict(objects)
        self.log = [each for each in self.log if each[0] <= self.version]
        self.compacted = min(self.compacted, self.version)
        self.epoch += 1
        self.snapshots[self.epoch, self.version] = dict(self.objects)
        self.restored = True
        self.pages = []
        if self.stream is not None:
            self.stream = None
            self._step(reflector.Failed("lost"))

    def _answer(self, question):
        match question:
            case reflector.Sleep(seconds):
                self.now += seconds
                return reflector.Woke()
            case reflector.Probe():
                return reflector.Probed(str(self.version))
            case reflector.List(limit, continue_):
                return self._page(limit, continue_)
            case reflector.Open("", True):
                initial = [Put(stored(name, version)) for name, version in sorted(self.objects.items())]
                self.stream = Stream([*initial, Mark(str(self.version), initial_events_end=True)], self.version)
                return reflector.Opened()
            case reflector.Open(version, False):
                if int(version) < self.compacted:
                    return reflector.Failed("expired")
                self.stream = Stream([frame for at, frame in self.log if at > int(version)], int(version))
                return reflector.Opened()

    def _page(self, limit, continue_):
        if not continue_:
            self.pages = sorted(self.objects.items())
            self.listed_at = self.version
        elif self.listed_at < self.compacted or not self.pages:
            return reflector.Failed("expired")
        page, self.pages = (self.pages[:limit], self.pages[limit:]) if limit else (self.pages, [])
        items = tuple(stored(name, version) for name, version in page)
        return reflector.Page(items, str(self.listed_at), "more" if self.pages else "")

    @precondition(lambda self: self.question is not None)
    @rule()
    def the_server_answers(self):
        self._step(self._answer(self.question))

    @precondition(lambda self: self.question is not None and not isinstance(self.question, reflector.Sleep))
    @rule(reason=reasons)
    def the_question_fails(self, reason):
        self._step(reflector.Failed(reason, 1.0 if reason == "throttled" else 0.0))

    @precondition(lambda self: self.stream is not None and self.stream.frames)
    @rule(count=st.integers(1, 4))
    def the_stream_speaks(self, count):
        frames = self.stream.frames
        self._step(tuple(frames.popleft() for _ in range(min(count, len(frames)))))

    @precondition(lambda self: self.state.phase == "watching" and not self.stream.frames and not self.restored)
    @rule()
    def a_bookmark_comes(self):
        self._step((Mark(str(self.version)),))

    @precondition(lambda self: self.stream is not None)
    @rule(reason=st.none() | reasons)
    def the_stream_ends(self, reason):
        self.stream = None
        self._step(
            reflector.Ended() if reason is None else reflector.Failed(reason, 1.0 if reason == "throttled" else 0.0)
        )

    @rule(reason=st.none() | reasons)
    def every_stream_ends_at_once(self, reason):
        """For a while, nothing that is opened lasts."""
        until = self.now + 30
        for _ in range(60):
            if self.now >= until:
                break
            if self.question is not None:
                self._step(self._answer(self.question))
            else:
                self.the_stream_ends(reason)
            self.no_hot_loop()

    @precondition(lambda self: self.question is not None)
    @rule()
    def the_server_answers_for_a_while(self):
        """Get somewhere: without this, most runs would never see a complete list."""
        for _ in range(6):
            if self.question is not None:
                self._step(self._answer(self.question))
        if self.stream is not None and self.stream.frames:
            self.the_stream_speaks(len(self.stream.frames))

    @rule()
    def a_caller_requests_a_new_list(self):
        self.stream = None
        self.asked.clear()  # a caller requested it, not the reflector
        self._step(reflector.Refresh())

    @precondition(lambda self: self.stream is not None)
    @rule(seconds=st.floats(0.0, 60.0))
    def time_passes(self, seconds):
        self.now += seconds

    @invariant()
    def the_mirror_is_the_collection_at_its_version(self):
        if self.mirror_at is not None and self.mirror_at[0] == self.epoch:
            assert self.mirror == self.snapshots[self.mirror_at]

    @invariant()
    def the_mirror_knows_its_version(self):
        if self.mirror_at is not None:
            assert self.state.version == str(self.mirror_at[1])

    @invariant()
    def no_hot_loop(self):
        recent = [moment for moment in self.asked if moment > self.now - 30]
        assert len(recent) < 20, recent

    def teardown(self):
        """A server that behaves again is followed to the end."""
        if self.state.phase == "idle":
            return
        for _ in range(60):
            if self.question is not None:
                self._step(self._answer(self.question))
            elif self.stream.frames:
                self._step(tuple(self.stream.frames))
                if self.stream is not None:
                    self.stream.frames.clear()
            elif self.stream.position > self.version:
                self.stream = None
                self._step(reflector.Failed("lost"))  # it is silent, which is noticed
            else:
                break
        assert self.state.phase == "watching"
        assert self.mirror == self.objects

    @invariant()
    def is_a_step(self):
        steps["taken"] += 1


EXAMPLES = portions.count(sample=70, of=200)


def test_the_reflector_does_what_the_model_does():
    run_state_machine_as_test(
        ReflectorMachine, settings=settings(max_examples=EXAMPLES, stateful_step_count=50, deadline=None)
    )
    assert steps["taken"] >= 30 * EXAMPLES


def test_a_watch_is_tried_again_within_a_minute_whatever_the_server_asks_for():
    stepper, dice = Stepper(Settings()), Dice()
    state, _ = stepper.step(State(), reflector.Begin(), now=0.0, rng=dice)
    _, (sleep,) = stepper.step(state, reflector.Failed("throttled", 1e9), now=0.0, rng=dice)
    assert sleep == reflector.Sleep(60.0)
