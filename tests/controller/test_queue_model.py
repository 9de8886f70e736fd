"""The queue against a model that is too simple to be wrong."""

from collections import Counter
from random import Random  # noqa: TID251 - seeded: nothing is left to chance

from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from steersman.controller.causes import Cause, Request
from steersman.controller.queue.state import LOW_PRIORITY, QueueOptions, QueueState
from steersman.objects import Key

REQUESTS = [Request(Key(namespace, name)) for namespace in ("a", "b") for name in ("x", "y")]
OPTIONS = QueueOptions(initial=0.5, maximum=16.0, jitter=0.0, hold=1.0, patience=5.0, share=4)
steps = Counter()


class QueueMachine(RuleBasedStateMachine):
    """The model knows for every request when it may run, how urgently and why; and which ones run."""

    def __init__(self):
        super().__init__()
        self.now = 0.0
        self.queue = QueueState(OPTIONS)
        self.count = 0
        self.due = {}  # request -> when it may run
        self.why = {}  # request -> causes not yet delivered
        self.priority = {}
        self.running = {}  # request -> priority it was taken with
        self.reasons = {}  # request that runs -> why, without the notes of earlier tries
        self.tries = {}  # request -> how many runs in a row are tried again
        self.failures = {}  # ... and how many of the last ones failed
        self.hold = {}

    def model_add(self, request, cause, priority, after):
        due = max(self.now + after, self.hold.get(request, 0.0))
        # a request that may run already stays so
        self.due[request] = min(due, self.due.get(request, due))
        self.why.setdefault(request, []).append(cause)
        self.priority[request] = max(priority, self.priority.get(request, priority))

    def ready(self):
        return {r for r, due in self.due.items() if due <= self.now and r not in self.running}

    @rule(
        request=st.sampled_from(REQUESTS),
        priority=st.sampled_from([0, 0, LOW_PRIORITY, 50]),
        after=st.sampled_from([0.0, 0.0, 0.0, 0.25, 2.0, 30.0]),
    )
    def add(self, request, priority, after):
        self.count += 1
        cause = Cause(what="external", note=str(self.count))
        self.queue.add(request, cause, now=self.now, priority=priority, after=after)
        self.model_add(request, cause, priority, after)

    @rule(seconds=st.sampled_from([0.1, 0.5, 1.0, 7.0]))
    def wait(self, seconds):
        self.now += seconds

    @precondition(lambda self: self.due)
    @rule()
    def take(self):
        ready = self.ready()
        taken = self.queue.take(self.now)
        if not ready:
            assert taken is None
            return
        request = taken.request
        assert request in ready
        assert taken.priority == self.priority[request]
        if self.priority[request] < max(self.priority[r] for r in ready):
            assert taken.waited >= 0
            assert any(self.now - self.due[r] >= OPTIONS.patience for r in ready)
        why = self.why.pop(request)
        assert len(taken.causes.kept) <= 16
        assert set(taken.causes.kept) <= set(why)
        assert set(why[:8]) <= set(taken.causes.kept)
        assert all(cause in taken.causes for cause in why if cause.what == "retry")
        assert (taken.causes.total, taken.causes.omitted) == (len(why), len(why) - len(taken.causes.kept))
        self.reasons[request] = [cause for cause in why if cause.what != "retry"]
        self.running[request] = self.priority.pop(request)
        del self.due[request]

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def done(self, data):
        request = data.draw(st.sampled_from(sorted(self.running)))
        self.queue.done(request, now=self.now)
        del self.running[request]

    @precondition(lambda self: self.running)
    @rule(data=st.data(), failed=st.sampled_from([True, True, False]))
    def again(self, data, failed):
        """The run failed, or asks to run again: it backs off, and what it ran for goes on to the next run."""
        request = data.draw(st.sampled_from(sorted(self.running)))
        self.count += 1
        cause = Cause(what="retry", note=str(self.count))
        delay = self.queue.retry(request, cause, now=self.now, rng=Random(1), failed=failed)
        tries = self.tries[request] = self.tries.get(request, 0) + 1
        assert delay == min(0.5 * 2 ** (tries - 1), 16.0)
        self.failures[request] = self.failures.get(request, 0) + 1 if failed else 0
        self.hold[request] = self.now + min(delay, OPTIONS.hold)
        if request in self.due:
            self.due[request] = max(self.due[request], self.hold[request])
        came = self.why.pop(request, [])
        self.why[request] = self.reasons[request].copy()
        self.model_add(request, cause, self.running[request], delay)
        self.why[request] += came
        self.queue.done(request, now=self.now)
        del self.running[request]

    @rule(request=st.sampled_from(REQUESTS))
    def forget(self, request):
        self.queue.forget(request)
        self.failures.pop(request, None)
        self.tries.pop(request, None)
        self.hold.pop(request, None)

    @precondition(lambda self: self.count % 5 == 4)
    @rule(namespace=st.sampled_from(["a", "b"]))
    def drop(self, namespace):
        """The requests of one tenant leave without a trace; those that run end."""
        self.count += 1
        self.queue.drop(lambda request: request.key.namespace == namespace)
        for request in [request for request in REQUESTS if request.key.namespace == namespace]:
            for known in (self.due, self.why, self.priority, self.failures, self.tries, self.hold):
                known.pop(request, None)

    @invariant()
    def counts_agree(self):
        steps["taken"] += 1
        self.queue.advance(self.now)
        found = self.queue.statistics(self.now)
        waiting = {r for r in self.due if r not in self.running}
        assert found.ready == len(self.ready()) == self.queue.ready
        assert found.delayed == len(waiting) - len(self.ready())
        assert found.running == len(self.running)
        later = [self.due[r] for r in waiting if self.due[r] > self.now]
        assert self.queue.next_due == (min(later) if later else None)
        assert {r: due for r in REQUESTS if (due := self.queue.due(r)) is not None} == self.due
        assert {r: self.queue._entries[r].priority for r in self.due} == self.priority
        assert {r for r in REQUESTS if self.queue.is_running(r)} == set(self.running)
        assert {r: self.queue.failures(r) for r in REQUESTS if r in self.failures} == self.failures
        assert found.failing == sum(1 for failures in self.failures.values() if failures)
        assert found.failing + found.requeued == len(self.tries)
        assert {r for r, _ in found.oldest} == self.ready()
        assert {r for r, _ in found.longest_running} == set(self.running)
        waits = [seconds for _, seconds in found.oldest]
        assert waits == sorted(waits, reverse=True)
        assert waits == [self.now - self.queue._entries[r].ready_at for r, _ in found.oldest]

    def teardown(self):
        """Nothing is lost: whatever was added comes out in the end, with every cause."""
        for request in sorted(self.running):
            self.queue.done(request, now=self.now)
        self.running.clear()
        self.now += 1000.0
        while self.due:
            self.take()
            for request in sorted(self.running):
                self.queue.done(request, now=self.now)
            self.running.clear()
        assert self.queue.take(self.now) is None
        assert self.queue._entries == {}
        assert self.queue._timers == []


def test_the_queue_does_what_the_model_does():
    """No sequence of steps loses, doubles or overtakes a request."""
    run_state_machine_as_test(
        QueueMachine,
        settings=settings(
            max_examples=300,
            stateful_step_count=50,
            deadline=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert steps["taken"] >= 10_000
