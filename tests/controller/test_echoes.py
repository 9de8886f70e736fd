"""Echo or news: the judge by itself, and what an answer explains."""

import pytest
from hypothesis import given, strategies as st

from samples.site import Site
from steersman.client.foreign_changes import explains, explains_deletion
from steersman.controller import Cause, Request, Write, WriteLog
from steersman.controller.writes.echoes import HELD_LIMIT, MEMORY_SECONDS, Echoes
from steersman.kinds.core_v1 import ConfigMap
from steersman.objects import Key

SITE, MAP = Site.gvk(), ConfigMap.gvk()
ME, OTHER = Request(Key("a", "me")), Request(Key("a", "other"))
CHILD = Key("a", "child")


def cause(version="7", *, kind=MAP, key=CHILD, what="object", happened="changed", unbroken=True):
    return Cause(what=what, kind=kind, type=happened, key=key, resource_version=version, unbroken=unbroken)


def ran(*writes, watched=None):
    echoes, log = Echoes(SITE, watched), WriteLog()
    echoes.begin(ME, log)
    for write in writes:
        log.written(write, None)
    assert echoes.end(ME, 0.0) == []
    return echoes


def test_an_echo_is_known_for_a_while_after_the_run():
    echoes = ran(Write(MAP, CHILD, "7"))
    assert echoes.judge(ME, cause(), 0, 1.0) == "echo"
    assert echoes.judge(ME, cause(), 0, MEMORY_SECONDS + 1) == "news"


def test_it_is_an_echo_only_to_who_wrote():
    """Two Sites that share a child: what one writes is news to the other."""
    assert ran(Write(MAP, CHILD, "7")).judge(OTHER, cause(), 0, 1.0) == "news"


@pytest.mark.parametrize(
    "news",
    [
        cause(what="initial", happened="appeared"),
        cause(what="resync"),
        cause(unbroken=False),
        cause(happened="vanished"),
        cause("8"),
        cause(key=Key("a", "sister")),
        cause(kind=SITE),
        Cause(what="external"),
    ],
    ids=str,
)
def test_everything_else_is_news(news):
    assert ran(Write(MAP, CHILD, "7")).judge(ME, news, 0, 1.0) == "news"


def test_an_event_before_its_answer_is_held_and_judged_at_the_end():
    echoes, log = Echoes(SITE), WriteLog()
    echoes.begin(ME, log)
    assert echoes.judge(ME, cause("7"), 0, 0.0) == "held"
    assert echoes.judge(ME, cause("8"), -5, 0.0) == "held"
    log.written(Write(MAP, CHILD, "7"), None)
    assert echoes.end(ME, 1.0) == [(cause("8"), -5)]
    assert echoes.suppressed == 1


def test_a_write_with_unknown_outcome_suppresses_nothing():
    echoes, log = Echoes(SITE), WriteLog()
    echoes.begin(ME, log)
    log.unknown(MAP, CHILD)
    assert echoes.judge(ME, cause(), 0, 0.0) == "held"
    assert [held.cause for held in echoes.end(ME, 1.0)] == [cause()]


def test_what_is_held_has_a_bound():
    echoes = Echoes(SITE)
    echoes.begin(ME, WriteLog())
    verdicts = [echoes.judge(ME, cause(str(version)), 0, 0.0) for version in range(HELD_LIMIT + 5)]
    assert verdicts == ["held"] * HELD_LIMIT + ["news"] * 5
    assert len(echoes.end(ME, 1.0)) == HELD_LIMIT


def test_writes_to_kinds_that_are_not_watched_are_not_remembered():
    echoes = ran(*(Write(MAP, Key("a", str(n)), "7") for n in range(100)), watched=frozenset({SITE}))
    assert len(echoes._memory) == 0


BEFORE = {
    "apiVersion": "v1",
    "metadata": {"name": "x", "resourceVersion": "5", "labels": {"a": "1"}},
    "data": {"k": "1", "gone": "x"},
    "status": {"ready": 0},
}


def after(**changes):
    metadata = BEFORE["metadata"] | {"resourceVersion": "9", "generation": 4, "managedFields": [{"manager": "me"}]}
    return BEFORE | {"metadata": metadata} | changes


@pytest.mark.parametrize(
    ("sent", "answer", "explained"),
    [
        ({"data": {"k": "2"}}, after(data={"k": "2", "gone": "x"}), True),
        ({"data": {"k": "1"}}, after(), True),
        ({"data": {"gone": None}}, after(data={"k": "1"}), True),
        ({"status": {"list": [1]}}, after(status={"ready": 0, "list": [1]}), True),
        ({"data": {"k": "2"}}, after(data={"k": "3", "gone": "x"}), False),
        ({"data": {"k": "1"}}, after(status={"ready": 3}), False),
        ({"data": {"k": "2"}}, after(data={"k": "2"}), False),
        ({"data": {"k": "2"}}, after(data={"k": "2", "gone": "x", "new": "y"}), False),
        ({}, after(data={}), False),
        ({"spec": {"items": [{"a": 1}]}}, after(spec={"items": [{"a": 1, "defaulted": True}]}), False),
    ],
)
def test_an_answer_is_explained_by_what_was_known_and_sent(sent, answer, explained):
    assert explains(BEFORE, sent, answer) is explained


trees = st.recursive(
    st.integers(0, 2) | st.booleans(),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.sampled_from("abc"), trees, max_size=3)


def merged(base, patch):
    if not isinstance(patch, dict):
        return patch
    base = base if isinstance(base, dict) else {}
    return base | {name: merged(base.get(name), value) for name, value in patch.items()}


@given(base=objects, patch=objects, foreign=objects)
def test_a_merge_is_always_explained_and_foreign_fields_never(base, patch, foreign):
    result = merged(base, patch)
    assert explains(base, patch, result)
    assert not explains(base, patch, result | {"foreign": foreign})


def marked(**metadata):
    return after(metadata=after()["metadata"] | {"deletionTimestamp": "2026-01-01T00:00:00Z"} | metadata)


def test_a_mark_for_deletion_is_explained_and_what_came_with_it_is_not():
    assert explains_deletion(BEFORE, marked(deletionGracePeriodSeconds=0))
    assert explains_deletion(BEFORE, marked(finalizers=["foregroundDeletion"]))
    assert not explains_deletion(BEFORE, marked(finalizers=["test.dev/theirs"]))
    assert not explains_deletion(BEFORE, marked(labels={"new": "1"}))
    assert not explains_deletion(BEFORE, marked() | {"data": {"k": "theirs"}})
    # it was marked already: this deletion made no event
    assert not explains_deletion(marked(), marked())
