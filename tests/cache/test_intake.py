"""What the cache keeps of an object's bytes."""

import json

import msgspec
import pytest
from hypothesis import given, strategies as st

from steersman.cache import KindOptions
from steersman.cache.intake import Intake, without_managed_fields
from steersman.objects import FieldSelector, Key, Selector

MANAGED = [
    {"manager": "ours", "operation": "Apply", "time": "2030-01-01T00:00:00Z", "fieldsV1": {"f:data": {}}},
    {"manager": "theirs", "operation": "Update", "fieldsV1": {"f:metadata": {}}},
]
texts = st.text(max_size=8) | st.just('"managedFields":[]')
trees = st.recursive(
    st.none() | st.integers() | texts, lambda inner: st.dictionaries(texts, inner, max_size=3), max_leaves=8
)


def printed(tree, *, indent=None):
    separators = (",", ":") if indent is None else (", ", ": ")
    return json.dumps(tree, indent=indent, separators=separators, ensure_ascii=False).encode()


@given(
    before=st.dictionaries(texts, trees, max_size=3),
    after=st.dictionaries(texts, trees, max_size=3),
    elsewhere=trees,
    twice=st.booleans(),
    indent=st.none() | st.just(1),
)
def test_only_managed_fields_are_cut_out(before, after, elsewhere, twice, indent):
    """Wherever they stand, however the object is printed, and if something else looks just like them."""
    metadata = {**before, "managedFields": MANAGED, **after}
    tree = {"metadata": metadata, "spec": {"inner": elsewhere, "metadata": {"managedFields": MANAGED} if twice else {}}}
    raw = printed(tree, indent=indent)
    managed = msgspec.json.decode(raw, type=dict[str, dict[str, msgspec.Raw]])["metadata"]["managedFields"]
    rest = json.loads(without_managed_fields(raw, managed))
    if tree["metadata"]["managedFields"] is MANAGED:
        del tree["metadata"]["managedFields"]
    assert rest == json.loads(printed(tree))


def config(**metadata):
    return printed({"metadata": {"name": "a", "namespace": "x", **metadata}, "data": {"k": "v"}})


def test_an_object_is_known_by_its_metadata():
    owners = [{"uid": "second", "name": "o"}, {"uid": "first", "name": "o", "controller": True}]
    stored = Intake(KindOptions(), field_managers=("ours",)).admit(
        config(
            uid="u",
            resourceVersion="7",
            generation=3,
            labels={"app": "web"},
            ownerReferences=owners,
            deletionTimestamp="2030-01-01T00:00:00Z",
            managedFields=MANAGED,
        )
    )
    assert (stored.key, stored.uid, stored.resource_version, stored.generation) == (Key("x", "a"), "u", "7", 3)
    assert stored.labels == {"app": "web"}
    assert stored.owners == ("first", "second")
    assert stored.deleting
    assert not stored.partial
    assert json.loads(stored.managed_fields) == [{"manager": "ours", "operation": "Apply", "fieldsV1": {"f:data": {}}}]


def test_the_parts_of_our_own_manager_are_ours_too():
    """A program applies children under its name, and each controller of it a status under the name of a part."""
    names = ("ours", "ours/sites", "ours/pages", "ours-too", "theirs/ours", "our")
    managed = [{"manager": name, "operation": "Apply", "fieldsV1": {"f:status": {}}} for name in names]
    stored = Intake(KindOptions(), field_managers=("ours",)).admit(config(managedFields=managed))
    kept = [entry["manager"] for entry in json.loads(stored.managed_fields)]
    assert kept == ["ours", "ours/sites", "ours/pages"]


def test_an_answer_is_read_once_for_all_who_look_at_it():
    intake = Intake(KindOptions(), field_managers=("ours",))
    one, other = config(resourceVersion="1"), config(resourceVersion="2")
    first = intake.admit_answer(one)
    assert intake.admit_answer(one) is first
    assert intake.admit_answer(other).resource_version == "2"
    assert intake.admit_answer(one).resource_version == "1"
    assert intake.admit_answer(b"no object") is None


def test_objects_share_what_they_have_in_common():
    intake = Intake(KindOptions(), field_managers=("ours",))
    one, other = (intake.admit(config(name=name, labels={"app": "web"}, managedFields=MANAGED)) for name in "ab")
    assert one.own_labels is other.own_labels
    assert one.managed_fields is other.managed_fields
    assert one.key.namespace is other.key.namespace


@pytest.mark.parametrize(
    "raw", [b"", b"5", b"{}", b'{"metadata":{}}', b'{"metadata":{"name":5}}', b"\xff", b"{" * 100_000]
)
def test_what_is_no_object_is_none(raw):
    assert Intake(KindOptions()).admit(raw) is None


@pytest.mark.parametrize(
    ("options", "selected"),
    [
        (KindOptions(), True),
        (KindOptions(namespaces=("y",)), False),
        (KindOptions(labels=Selector.parse("app=web")), True),
        (KindOptions(labels=Selector.parse("app!=web")), False),
        (KindOptions(fields=FieldSelector.parse("metadata.name=a,data.k=v")), True),
        (KindOptions(fields=FieldSelector.parse("data.k=other")), False),
        (KindOptions(fields=FieldSelector.parse("data.missing.deeper=")), True),
    ],
)
def test_selection_is_that_of_the_server(options, selected):
    raw = config(labels={"app": "web"})
    intake = Intake(options)
    assert intake.selects(intake.admit(raw), raw) is selected


def test_a_cache_names_each_namespace_once():
    with pytest.raises(ValueError, match="distinct"):
        KindOptions(namespaces=("a", "a"))
