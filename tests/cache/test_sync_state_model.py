"""The life of an informer: its states one by one, and random steps against their definition over the whole history."""

from collections import Counter

import pytest
from hypothesis import given, seed, settings, strategies as st

from samples import portions
from steersman.cache.sync_state import SyncState
from steersman.errors import ApiStatus, Forbidden

ERROR = Forbidden(ApiStatus(code=403))
SCOPES = ("a", "b")


def after(*steps, scopes=("",)):
    sync = SyncState(scopes)
    for name, *scope in steps:
        getattr(sync, name)(*scope, *([ERROR] if name == "deny" else []))
    return sync


LISTED, WITHDRAWN, MISSED, DENIED, RESTORED = ((name, "") for name in ("listed", "withdraw", "miss", "deny", "restore"))


@pytest.mark.parametrize(
    ("steps", "state", "settled"),
    [
        pytest.param([], "unlisted", False, id="reads wait for the first list"),
        pytest.param([LISTED], "synced", True, id="a complete list answers them"),
        pytest.param([MISSED], "unlisted", True, id="a kind that is not served has none to wait for"),
        pytest.param([DENIED], "unlisted", True, id="nor has one that may not be listed"),
        pytest.param([MISSED, LISTED], "synced", True, id="the kind is installed"),
        pytest.param([LISTED, MISSED], "synced", True, id="one such answer is not believed"),
        pytest.param([LISTED, MISSED, WITHDRAWN], "withdrawn", True, id="the kind is removed"),
        pytest.param([LISTED, WITHDRAWN, LISTED], "synced", True, id="and installed again"),
        pytest.param([LISTED, ("refresh",)], "synced", True, id="reads do not wait for a refresh"),
        pytest.param([LISTED, ("catch_up",)], "synced", False, id="reads wait while a leader catches up"),
        pytest.param([LISTED, ("catch_up",), ("caught_up",)], "synced", True, id="until it has"),
        pytest.param([LISTED, RESTORED], "synced", False, id="reads wait for a list of the restored server"),
        pytest.param([LISTED, RESTORED, LISTED], "synced", True, id="until it is complete"),
        pytest.param([LISTED, RESTORED, DENIED], "synced", True, id="unless it may not be listed"),
    ],
)
def test_states(steps, state, settled) -> None:
    sync = after(*steps)
    assert (sync.state, sync.settled) == (state, settled)


def test_a_store_that_is_complete_and_current_needs_no_list() -> None:
    assert after(LISTED, DENIED).denied is None
    assert after(LISTED, ("catch_up",), DENIED).denied is ERROR
    assert after(LISTED, ("catch_up",), DENIED, ("caught_up",)).denied is None


def test_news_is_news_once() -> None:
    sync = SyncState(SCOPES)
    assert [sync.miss("a"), sync.miss("a"), sync.miss("b")] == [True, False, True]
    assert [sync.restore("a"), sync.restore("a"), sync.restore("b")] == [True, False, True]


# the definition over the history


def last(history, *names, scope):
    """The last of certain steps of a scope; empty if there was none."""
    found = [name for name, *where in history if name in names and where in ([], [scope])]
    return found[-1] if found else ""


def awaited(history):
    return {each for each in SCOPES if last(history, "listed", "withdraw", "refresh", scope=each) != "listed"}


def restored(history):
    return {each for each in SCOPES if last(history, "restore", "listed", "withdraw", scope=each) == "restore"}


def catching_up(history):
    return sum((name == "catch_up") - (name == "caught_up") for name, *_ in history)


def state_of(history):
    complete = [end for end in range(len(history) + 1) if not awaited(history[:end])]
    withdrawn = [end for end, (name, *_) in enumerate(history, 1) if name == "withdraw"]
    if complete and complete[-1] > max(withdrawn, default=0):
        return "synced"
    return "withdrawn" if complete else "unlisted"


def denied(history):
    found = set()
    for end, (name, *scope) in enumerate(history, 1):
        before = history[: end - 1]
        if name == "deny" and (state_of(before) != "synced" or catching_up(before) or restored(before)):
            found.update(scope)
        elif name == "listed":
            found.difference_update(scope)
        elif name == "caught_up" and state_of(before) == "synced" and not catching_up(history[:end]):
            found.clear()
    return found


reached = Counter()
steps = st.lists(
    st.one_of(
        st.tuples(
            st.sampled_from(["listed", "listed", "withdraw", "miss", "deny", "restore"]), st.sampled_from(SCOPES)
        ),
        st.sampled_from([("refresh",), ("catch_up",), ("caught_up",)]),
    ),
    max_size=14,
)
#: Some begin with a complete list: few random steps reach one, and withdraw it.
stories = st.tuples(st.sampled_from([[], [("listed", scope) for scope in SCOPES]]), steps).map(
    lambda parts: [*parts[0], *parts[1]]
)


@given(stories)
def play(story) -> None:
    history = []
    for step in story:
        if step != ("caught_up",) or catching_up(history):
            history.append(step)
    sync, state = after(*history, scopes=SCOPES), state_of(history)
    absent = {each for each in SCOPES if last(history, "miss", "listed", scope=each) == "miss"}
    reads = {
        "unlisted": bool(absent),
        "synced": not catching_up(history) and not restored(history),
        "withdrawn": True,
    }
    reached[state] += 1
    assert sync.state == state
    assert sync.synced == (state == "synced")
    assert sync.refreshed == (not awaited(history))
    assert sync.served == (not absent)
    assert (sync.denied is not None) == bool(denied(history))
    assert {each for each in SCOPES if sync.was_restored(each)} == restored(history)
    assert sync.settled == (reads[state] or bool(denied(history)))


def test_random_steps() -> None:
    examples = portions.count(sample=200, of=2_000)
    seed(portions.seed_of("sync"))(settings(max_examples=examples, deadline=None)(play))()
    assert set(reached) == {"unlisted", "synced", "withdrawn"}
