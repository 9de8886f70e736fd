"""The state of a thing outside, step by step: the calls that are due, the notes, and when."""

from random import Random  # noqa: TID251 - seeded by the test

import pytest

from samples.site import Site, SiteSpec
from steersman import Key, ObjectMeta
from steersman.patterns import Wait
from steersman.patterns.external import Absent, Broken, ExternalKey, Present, Working
from steersman.patterns.external.entries import Deleted, Inquiry, Missing, Raised, Start, There, Timing
from steersman.patterns.external.in_flight import InFlight
from steersman.patterns.external.state import ExternalState

NOT_FOUND = (
    "bucket was not found, but a request to create it, also one of an earlier process, may still be in flight;"
    " Steersman waits up to 10 s (late=)"
)


def site(generation=1, *, uid="u1", name="home", version="1", image="nginx"):
    meta = ObjectMeta(name=name, namespace="web", uid=uid, generation=generation, resource_version=version)
    return Site(metadata=meta, spec=SiteSpec(image=image))


class Table:
    """The state, with calls that end when a test says so."""

    def __init__(self, *, can_update=True, judge=lambda obj, found: found == obj.spec.image, **timing):
        timing = Timing(**({"late": 10.0} | timing))
        self.now = 0.0
        self.state = ExternalState("bucket", timing, Start(0.0), rng=Random(1), judge=judge, can_update=can_update)

    def ensure(self, obj):
        return self.state.ensure(self.key(obj), obj, self.now, Inquiry(created=not obj.metadata.labels))

    def remove(self, obj):
        return self.state.remove(self.key(obj), obj, self.now, Inquiry(created=not obj.metadata.labels))

    def look(self, obj):
        return self.state.look(self.key(obj), obj, self.now, Inquiry(created=not obj.metadata.labels))

    @staticmethod
    def key(obj):
        return ExternalKey(uid=obj.uid, generation=obj.generation, kind="Site", key=obj.key)

    def take(self, after=0.0):
        self.now += after
        return self.state.take(self.now)

    def done(self, work, result):
        return self.state.done(work, result, self.now)

    def present(self, obj, found="nginx"):
        """Bring it there."""
        self.ensure(obj)
        assert self.done(self.take(), There(found)).note == "bucket found"
        assert self.ensure(obj) == Present(found)


def test_nothing_is_made_before_it_was_looked_for():
    table = Table()
    assert table.ensure(site()) == Working("bucket is being looked for")
    found = table.done(table.take(), Missing())
    assert (found.work.call, found.note) == ("create", "")
    assert table.ensure(site()) == Working("bucket is being created")
    assert table.done(found.work, There("nginx")).note == "bucket created"
    assert table.ensure(site()) == Present("nginx")
    assert table.take(after=1000) is None


def test_what_is_found_is_not_made_again():
    table = Table()
    table.ensure(site())
    assert table.done(table.take(), There("nginx")).work is None
    assert table.ensure(site()) == Present("nginx")


def test_a_look_makes_nothing_and_notes_nothing():
    table = Table()
    assert table.look(site())
    finished = table.done(table.take(), Missing())
    assert (finished.work, finished.note) == (None, "")
    assert not table.look(site())
    assert table.take(after=1.0) is None
    assert table.ensure(site()) == Working("bucket is being created")
    assert table.take().call == "create"


def test_what_was_not_found_long_ago_is_looked_for_again():
    table = Table()
    table.look(site())
    table.done(table.take(), Missing())
    table.now = 6.0
    table.ensure(site())
    assert table.take().call == "find"


@pytest.mark.parametrize("age", ["new", "old"])
def test_after_a_look_it_is_present_at_once(age):
    table, found = Table(), site() if age == "new" else old()
    table.look(found)
    table.done(table.take(), There("nginx"))
    assert table.ensure(found) == Present("nginx")


def test_a_failure_is_noted_and_tried_again_only_on_request():
    table = Table()
    table.ensure(site())
    finished = table.done(table.take(), Raised("OSError: no route"))
    assert finished.note == "looking for bucket failed: OSError: no route"
    assert table.take(after=100) is None  # no reconcile asked since: the object may be gone
    assert table.ensure(site()) == Broken("looking for bucket failed: OSError: no route")
    assert table.take().call == "find"


def test_a_failure_has_the_same_words_while_it_is_tried_again():
    table = Table()
    table.ensure(site())
    delays = []
    for _ in range(6):
        table.done(table.take(), Raised("no"))
        before = table.now
        assert table.ensure(site()) == Broken("looking for bucket failed: no")
        table.now = table.state.next_due()
        delays.append(table.now - before)
        work = table.take()
        assert table.ensure(site()) == Broken("looking for bucket failed: no")
        table.state.done(work, Raised("no"), table.now)
        table.ensure(site())
        table.now = table.state.next_due()
    assert delays == sorted(delays)
    assert 0.4 <= delays[0] <= 0.5
    table.done(table.take(), There("nginx"))
    assert table.ensure(site()) == Present("nginx")


def test_a_retry_is_pending_only_if_something_has_changed_since_the_failure():
    """`drained` waits for what is pending. A retry of an unchanged request takes its own time."""
    table, obj = Table(), site()
    table.ensure(obj)
    table.done(table.take(), Raised("no route"))
    table.ensure(obj)
    assert table.state.pending() == (0, 0)
    assert table.state.last_retry() is not None
    changed = site()
    changed.metadata.annotations = {"credentials": "new"}
    table.ensure(changed)
    assert table.state.pending() == (1, 0)
    assert table.done(table.take(after=1.0), There("nginx")).note == "bucket found"
    table.ensure(changed)
    assert (table.state.pending(), table.state.last_retry()) == ((0, 0), None)


@pytest.mark.parametrize("failing", [False, True])
def test_a_change_during_a_call_makes_its_retry_pending(failing):
    """A test that mends the cause of a failure and calls `drained` must not depend on when the failing call ends."""
    table = Table()
    table.ensure(site())
    call = table.take()
    if failing:
        table.done(call, Raised("no route"))
        table.ensure(site())
        call = table.take(after=1.0)
    changed = site()
    changed.metadata.annotations = {"credentials": "new"}
    table.ensure(changed)
    table.done(call, Raised("no route"))
    table.ensure(changed)
    assert table.state.pending() == (1, 0)
    table.done(table.take(after=1.0), Raised("no route"))
    table.ensure(changed)
    assert table.state.pending() == (0, 0)


def test_a_changed_request_after_a_failure_is_pending_while_it_waits_for_more_changes():
    """`drained` would return before the call that the change asks for."""
    table = Table(debounce=2.0)
    table.present(site())
    table.ensure(site(2, image="caddy"))
    work = table.take(after=2.0)
    table.done(work, Raised("no route"))
    table.ensure(site(2, image="caddy"))
    assert table.state.pending() == (0, 0)
    table.ensure(site(3, image="httpd"))
    assert table.state.pending() == (1, 0)


def test_after_a_lost_creation_absence_is_believed_late():
    table = Table(late=10.0)
    table.ensure(site())
    create = table.done(table.take(), Missing()).work
    table.now = 1.0
    assert table.done(create, Raised("reset")).note == "creating bucket failed: reset"
    table.ensure(site())
    calls = []
    while (due := table.state.next_due()) is not None and "create" not in calls:
        table.now = due
        work = table.take()
        calls.append(work.call)
        following = table.done(work, Missing()).work
        if following is not None:
            calls.append(following.call)
            assert table.now >= 10.0
            break
    assert calls[-2:] == ["find", "create"]
    assert len(calls) > 3  # it was looked for meanwhile: had it arrived, it would have been seen soon


def old(**options):
    """A site that was there before this run."""
    found = site(**options)
    found.metadata.labels = {"age": "old"}
    return found


def test_what_is_older_than_the_run_may_have_been_asked_for_by_another():
    table = Table(late=10.0)
    for ask, then in ((table.ensure, "create"), (table.remove, None)):
        table.now = 0.0
        ask(old(uid=str(then), name=str(then)))
        assert table.done(table.take(), Missing()).note == NOT_FOUND
        assert ask(old(uid=str(then), name=str(then))) == Working(NOT_FOUND)
        assert table.done(table.take(after=0.5), Missing()).note == ""  # once is enough
        table.now = 10.0
        following = table.done(table.take(), Missing()).work
        assert (following and following.call) == then
    assert table.remove(old(uid="None", name="None")) == Absent()


def test_an_object_that_comes_back_may_still_have_a_request_in_flight():
    """After a restored backup, or if labels select it again, the same object comes back."""
    table = Table(late=10.0)
    table.ensure(site())
    create = table.done(table.take(), Missing()).work
    table.state.forget(Key("web", "home"), table.now)  # during the call
    table.done(create, Raised("reset"))
    table.now = 5.0
    table.ensure(site())
    assert table.done(table.take(), Missing()).note == NOT_FOUND
    table.ensure(site())
    table.now = 10.0
    assert table.done(table.take(), Missing()).work.call == "create"


def test_where_creating_twice_makes_one_only_gone_has_to_wait():
    table = Table(late=10.0, repeatable=True)
    table.ensure(old())
    create = table.done(table.take(), Missing()).work
    table.done(create, Raised("reset"))
    table.ensure(old())
    assert table.done(table.take(after=0.5), Missing()).work.call == "create"
    table.remove(old(uid="u2", name="second"))
    assert table.done(table.take(), Missing()).work is None


def test_what_was_believed_for_one_wish_is_not_for_the_other():
    table = Table(late=10.0, repeatable=True)
    table.look(old())
    table.done(table.take(), Missing())
    assert table.remove(old()) == Working("bucket is being deleted")


def test_a_refused_creation_is_tried_again_without_that():
    table = Table(late=1000.0)
    table.ensure(site())
    table.done(table.done(table.take(), Missing()).work, Raised("no such region", certain=True))
    assert table.ensure(site()) == Broken("creating bucket failed: no such region")
    assert table.done(table.take(after=0.5), Missing()).work.call == "create"


def test_a_change_is_looked_at_and_updated():
    table = Table()
    table.present(site())
    changed = site(2, image="caddy")
    assert table.ensure(changed) == Working("bucket is being looked for")
    update = table.done(table.take(), There("nginx")).work
    assert (update.call, update.found, update.key.generation) == ("update", "nginx", 2)
    assert table.ensure(changed) == Working("bucket is being updated")
    assert table.done(update, There("caddy")).note == "bucket updated"
    assert table.ensure(changed) == Present("caddy")


def test_a_change_in_the_middle_of_a_call_is_not_forgotten():
    table = Table()
    table.ensure(site())
    create = table.done(table.take(), Missing()).work
    table.ensure(site(2, image="caddy"))
    find = table.done(create, There("nginx")).work
    assert (find.call, find.key.generation) == ("find", 2)
    assert table.done(find, There("nginx")).work.call == "update"


def test_an_older_generation_changes_nothing():
    table = Table()
    table.present(site(3, version="30"))
    assert table.ensure(site(2, version="20", image="caddy")) == Present("nginx")
    assert table.take() is None


@pytest.mark.parametrize(("version", "epoch"), [("20", 1), ("40", 0)], ids=["versions went back", "versions went on"])
def test_a_generation_that_went_back_is_updated_once(version, epoch):
    """The server was restored from a backup, and has the spec of before. It is not written again and again."""
    table = Table()
    table.present(site(3, version="30"))
    restored = site(2, version=version, image="caddy")

    def ensure():
        return table.state.ensure(table.key(restored), restored, table.now, Inquiry(epoch=epoch))

    assert ensure() == Working("bucket is being looked for")
    update = table.done(table.take(), There("nginx")).work
    assert (update.call, update.obj.spec.image, update.key.generation) == ("update", "caddy", 2)
    table.done(update, There("caddy"))
    for _ in range(3):
        assert ensure() == Present("caddy")
        assert table.take(after=1.0) is None


def test_a_kind_without_generations_is_looked_at_with_each_version():
    table = Table()
    table.present(site(0, version="7"))
    assert table.ensure(site(0, version="8")) == Working("bucket is being looked for")
    assert table.take().call == "find"


def test_an_older_version_of_a_kind_without_generations_changes_nothing():
    """A ConfigMap was read live, then from a cache that lags: the external object keeps the newer form."""
    table = Table()
    table.present(site(0, version="8", image="caddy"), found="caddy")
    assert table.ensure(site(0, version="7")) == Present("caddy")
    assert table.take() is None


def test_an_older_read_does_not_hide_what_caused_it():
    """A Secret that a failed call needs has changed: the retry comes soon, though the object's own cache lags."""
    table = Table()
    table.ensure(site(3, version="30"))
    table.done(table.take(), Raised("no password"))
    for _ in range(8):
        table.ensure(site(3, version="30"))
        table.done(table.take(after=1000.0), Raised("no password"))
    table.ensure(site(3, version="30"))
    assert table.take(after=1.0) is None
    lagging = site(3, version="20")
    changes = frozenset({"the Secret"})
    table.state.ensure(table.key(lagging), lagging, table.now, Inquiry(created=True, changes=changes))
    assert table.take().obj.metadata.resource_version == "30"


def test_what_it_depends_on_may_change_without_a_generation():
    table = Table()
    table.present(site())
    table.now = 20.0
    assert table.ensure(site(image="caddy")) == Working("bucket is being updated")
    find = table.take()
    assert find.call == "find"  # what is known is not recent
    assert table.done(find, There("nginx")).work.call == "update"


def test_an_update_that_changes_nothing_is_a_failure_that_backs_off():
    table = Table()
    table.present(site())
    table.ensure(site(2, image="caddy"))
    update = table.done(table.take(), There("nginx")).work
    words = "bucket was updated but still does not match the object"
    finished = table.done(update, There("nginx"))
    assert (finished.work, finished.note) == (None, words)
    assert table.ensure(site(2, image="caddy")) == Broken(words)
    assert table.take() is None
    assert table.take(after=1.0).call == "find"


def test_what_cannot_be_updated_is_reported_and_left_alone():
    table = Table(can_update=False, look_again=100.0)
    table.present(site())
    table.ensure(site(2, image="caddy"))
    words = "bucket does not match the object, and its API has no update: delete it there, or undo the change"
    assert table.done(table.take(), There("nginx")).note == words
    assert table.ensure(site(2, image="caddy")) == Broken(words)
    assert table.take(after=50.0) is None
    assert table.done(table.take(after=50.0), There("caddy")).note == "bucket changed"
    assert table.ensure(site(2, image="caddy")) == Present("caddy")


def test_a_failed_comparison_is_reported():
    table = Table(judge=lambda obj, found: "KeyError: 'size'")
    table.ensure(site())
    words = "comparing bucket with the object failed: KeyError: 'size'"
    assert table.done(table.take(), There("nginx")).note == words
    assert table.ensure(site()) == Broken(words)


def test_changes_are_waited_out_but_not_for_ever():
    table = Table(debounce=1.0, at_most=2.5)
    table.present(site())
    for number in range(2, 6):
        table.ensure(site(number, image=f"v{number}"))
        assert table.done(table.take(), There("nginx")).work is None
        if number < 5:
            table.now += 0.8
            assert table.take() is None
    assert table.now == pytest.approx(2.4)
    update = table.take(after=0.1)
    assert (update.call, update.key.generation) == ("update", 5)
    table.done(update, There("v5"))
    table.ensure(site(6, image="v6"))
    table.done(table.take(), There("v5"))
    assert table.take(after=0.9) is None  # the next row of changes has its own time
    assert table.take(after=0.1).call == "update"


def test_removing_looks_deletes_and_verifies():
    table = Table()
    table.present(site())
    assert table.remove(site(2)) == Working("bucket is being deleted")
    delete = table.done(table.take(), There("nginx")).work
    assert (delete.call, delete.found) == ("delete", "nginx")
    verify = table.done(delete, Deleted()).work
    assert verify.call == "find"
    assert table.done(verify, Missing()).note == "bucket deleted"
    assert table.remove(site(2)) == Absent()


def test_what_was_never_there_is_gone_after_a_look():
    table = Table()
    table.remove(site())
    assert table.done(table.take(), Missing()).note == "bucket is gone"
    assert table.remove(site()) == Absent()
    assert table.take(after=61) is None
    assert len(table.state) == 0  # no reconcile will ask again


def test_a_deletion_that_takes_its_time_is_waited_for():
    table = Table()
    table.remove(site())
    verify = table.done(table.done(table.take(), There("nginx")).work, Deleted()).work
    assert table.done(verify, There("nginx")).work is None
    assert table.remove(site()) == Working("bucket is being deleted")
    assert table.take() is None
    assert table.done(table.take(after=0.5), Missing()).note == "bucket is gone"
    assert table.remove(site()) == Absent()


def test_a_creation_under_way_is_removed_when_it_ends():
    table = Table()
    table.ensure(site())
    create = table.done(table.take(), Missing()).work
    assert table.remove(site(2)) == Working("bucket is being deleted")
    assert table.take() is None  # one thing at a time
    find = table.done(create, There("nginx")).work
    assert find.call == "find"
    assert table.done(find, There("nginx")).work.call == "delete"


def test_a_lost_creation_is_not_taken_for_gone():
    table = Table(late=10.0)
    table.ensure(site())
    create = table.done(table.take(), Missing()).work
    table.remove(site(2))
    find = table.done(create, Raised("reset")).work
    assert table.done(find, Missing()).work is None
    assert table.remove(site(2)) == Working(NOT_FOUND)
    table.now = 10.0
    assert table.done(table.take(), Missing()).note == "bucket is gone"


def test_drift_is_reported_and_mended_on_request():
    table = Table(look_again=60.0)
    table.present(site())
    assert table.take(after=50.0) is None
    look = table.take(after=10.0)
    assert look.again
    finished = table.done(look, Missing())
    assert (finished.work, finished.note) == (None, "bucket is gone")
    assert table.take(after=1.0) is None
    assert table.ensure(site()) == Working("bucket is being created")
    assert table.take().call == "create"


def test_a_look_that_fails_says_nothing_of_what_is_there():
    table = Table(look_again=60.0)
    table.present(site())
    assert table.done(table.take(after=60.0), Raised("down")).note == ""
    assert table.ensure(site()) == Present("nginx")
    assert table.take(after=1.0).again


def test_looks_without_requests_end():
    table = Table(look_again=60.0)
    table.present(site())
    notes = []
    while (due := table.state.next_due()) is not None:
        table.now = due
        notes.append(table.done(table.take(), There("nginx")).note)
    assert notes == [""] * 9 + ["bucket is looked after", ""]
    assert len(table.state) == 0


def test_an_object_that_is_gone_is_forgotten_and_its_call_leads_to_nothing():
    table = Table()
    table.ensure(site())
    find = table.take()
    table.state.forget(Key("web", "home"), table.now)
    assert table.done(find, Missing()).work is None
    assert len(table.state) == 0


def test_another_object_of_the_same_name_has_its_own_thing():
    table = Table()
    table.present(site())
    assert table.ensure(site(uid="u2")) == Working("bucket is being looked for")
    assert table.take().key.uid == "u2"
    assert len(table.state) == 1


def test_timers_do_not_pile_up():
    table = Table(debounce=1.0, at_most=1000.0)
    table.present(site())
    for number in range(2, 500):
        table.now += 0.1
        table.ensure(site(number, image=str(number)))
        table.done(table.take(), There("nginx"))
    assert len(table.state._timers) < 80


def test_an_answer_is_a_step():
    assert Working("w").wait == Wait("w", reason="ExternalPending")
    assert Broken("b").wait == Wait("b", reason="ExternalError")


def test_a_key_is_uid_and_generation():
    assert str(Table.key(site(3))) == "u1.3"


# what is easily overlooked


def test_what_is_being_deleted_is_not_taken_for_there():
    table = Table(late=10.0)
    table.present(site())
    table.remove(site())
    delete = table.done(table.take(), There("nginx")).work
    table.ensure(site())
    find = table.done(delete, Deleted()).work
    assert table.done(find, There("nginx")).work is None
    assert table.ensure(site()) == Working("bucket is being looked for")
    table.now = 10.0
    assert table.done(table.take(), There("nginx")).note == "bucket found"


def test_what_is_forgotten_still_has_one_call_at_a_time():
    table = Table()
    table.ensure(site())
    find = table.take()
    table.state.forget(Key("web", "home"), table.now)
    table.ensure(site())
    assert table.take() is None
    assert table.done(find, There("nginx")).note == "bucket found"


def test_what_was_found_long_ago_is_not_deleted_unseen():
    table = Table()
    table.look(site())
    table.done(table.take(), There("nginx"))
    table.now = 20.0
    table.remove(site())
    assert table.take().call == "find"


def test_what_was_made_for_another_wish_is_looked_at_before_it_is_deleted():
    table = Table()
    table.ensure(site())
    create = table.done(table.take(), Missing()).work
    table.remove(site())  # of the same generation: a label was set
    assert table.done(create, There("nginx")).work.call == "find"


def test_one_of_several_creations_may_be_late():
    table = Table(late=10.0, repeatable=True)
    table.ensure(site())
    table.done(table.done(table.take(), Missing()).work, Raised("reset"))
    table.ensure(site())
    again = table.done(table.take(after=0.5), Missing()).work
    table.done(again, There("nginx"))
    table.remove(site(2))
    delete = table.done(table.take(), There("nginx")).work
    assert table.done(table.done(delete, Deleted()).work, Missing()).work is None
    assert table.remove(site(2)) == Working(NOT_FOUND)
    table.now = 10.0
    assert table.done(table.take(), Missing()).note == "bucket deleted"


def test_an_update_that_comes_in_late_is_noticed():
    table = Table(late=10.0)
    table.present(site())
    table.ensure(site(2, image="v2"))
    table.done(table.done(table.take(), There("nginx")).work, Raised("reset"))
    table.ensure(site(3, image="v3"))
    find = table.take()
    table.now = 11.0  # a look that took long: it may have seen what was so before
    found = table.done(find, There("v3"))
    assert (found.note, found.work.again) == ("bucket found", True)
    assert table.done(found.work, There("v2")).note == "bucket changed"
    assert table.ensure(site(3, image="v3")) == Working("bucket is being updated")


def test_a_look_at_a_change_does_not_begin_with_it():
    table = Table()
    table.present(site())
    table.look(site(2, image="caddy"))
    assert table.done(table.take(), There("nginx")).work is None
    table.ensure(site(2, image="caddy"))
    assert table.take().call == "update"


def test_many_objects_that_are_deleted_at_once_are_forgotten_in_linear_time():
    """Each may have a request in flight; to look at all of them for each of them would take minutes."""
    in_flight, looked_at = InFlight(), 0
    for number in range(20_000):
        before = in_flight._until
        in_flight.add(f"u{number}", 1000.0, 0.0)
        looked_at += len(before) if in_flight._until is not before else 0
    assert len(in_flight) == 20_000
    assert looked_at <= 2 * 20_000


def test_requests_that_can_no_longer_arrive_are_not_remembered_for_ever():
    in_flight = InFlight()
    for number in range(20_000):
        in_flight.add(f"u{number}", number + 10.0, float(number))
    assert len(in_flight) <= 100
    assert in_flight.take("u19999") == 20_009.0
