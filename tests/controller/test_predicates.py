"""Which events pass."""

import pytest

from samples.controllers import changed, view
from steersman.controller import (
    ObjectEvent,
    annotations_changed,
    generation_changed,
    labeled,
    labels_changed,
    resource_version_changed,
    when,
)

OLD = view(version="1", generation=1, labels={"app": "web"}, annotations={"note": "a", "other": "b"})
SPEC = view(version="2", generation=2, labels={"app": "web"}, annotations={"note": "a", "other": "b"})
STATUS = view(version="2", generation=1, labels={"app": "web"}, annotations={"note": "a", "other": "b"})
LABELS = view(version="2", generation=1, labels={"app": "db"}, annotations={"note": "a", "other": "b"})
NOTES = view(version="2", generation=1, labels={"app": "web"}, annotations={"note": "z", "other": "b"})
DELETING = view(
    version="2",
    generation=1,
    labels={"app": "web"},
    annotations={"note": "a", "other": "b"},
    deletionTimestamp="2030-01-01T00:00:00Z",
)


@pytest.mark.parametrize(
    ("predicate", "passing"),
    [
        (generation_changed(), {"spec", "deleting"}),
        (labels_changed(), {"labels"}),
        (annotations_changed(), {"notes"}),
        (annotations_changed("note"), {"notes"}),
        (annotations_changed("other"), set()),
        (resource_version_changed(), {"spec", "status", "labels", "notes", "deleting"}),
        (labeled("app=db"), {"labels"}),
        (labeled("app=web"), {"spec", "status", "labels", "notes", "deleting", "resync"}),
        (generation_changed() | labels_changed(), {"spec", "labels", "deleting"}),
        (resource_version_changed() & ~generation_changed(), {"status", "labels", "notes"}),
        (when(lambda event: event.latest.metadata.annotations["note"] == "z"), {"notes"}),
    ],
    ids=lambda each: ",".join(sorted(each)) if isinstance(each, set) else str(each),  # a set has no order
)
def test_changes_pass(predicate, passing):
    changes = {"spec": SPEC, "status": STATUS, "labels": LABELS, "notes": NOTES, "deleting": DELETING, "resync": OLD}
    assert {name for name, new in changes.items() if predicate(changed(OLD, new))} == passing


def test_a_resync_passes_predicates_of_change_and_is_selected_by_the_others():
    again = ObjectEvent("changed", old=OLD, new=OLD, resync=True)
    assert all(predicate(again) for predicate in (generation_changed(), labels_changed(), annotations_changed("note")))
    assert (generation_changed() & labeled("app=web"))(again)
    assert not (generation_changed() & labeled("app=db"))(again)
    assert not resource_version_changed()(again)


@pytest.mark.parametrize(
    "predicate", [generation_changed(), labels_changed(), annotations_changed(), resource_version_changed()], ids=str
)
def test_what_appears_or_vanishes_passes_every_predicate_of_change(predicate):
    assert predicate(ObjectEvent("appeared", new=OLD))
    assert predicate(ObjectEvent("vanished", old=OLD))


def test_kinds_without_generation_pass_whenever_they_change():
    assert generation_changed()(changed(view(version="1"), view(version="2")))
    assert not generation_changed()(changed(view(version="1"), view(version="1")))


def test_a_successor_under_the_same_name_is_a_change():
    assert generation_changed()(changed(view(uid="one", generation=1), view(uid="two", generation=1)))


def test_words_instead_of_operators_are_refused():
    with pytest.raises(TypeError, match="combine predicates with &"):
        _ = generation_changed() and labels_changed()
    with pytest.raises(TypeError):
        _ = generation_changed() & (lambda event: True)


def test_a_predicate_cannot_wait():
    async def slow(event):
        return True

    with pytest.raises(TypeError, match="write def slow"):
        when(slow)


def test_a_predicate_can_be_read():
    combined = ~(generation_changed() | labels_changed()) & labeled("app=web")
    assert str(combined) == "(not (the generation changed or labels changed) and labels match app=web)"
