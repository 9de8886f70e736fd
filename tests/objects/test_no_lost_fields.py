"""No lost fields: a write never drops what the types do not know.

The usual client decodes into its types and writes them back: every field that a newer server added is gone. Each test here
reads an object with unknown fields, does something usual with it, writes it, and finds them again.
"""

from __future__ import annotations

import copy
import pickle
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from steersman.errors import AmbiguousItem
from steersman.markers import ListMap
from steersman.objects import (
    Condition,
    ObjectMeta,
    Resource,
    Spec,
    Status,
    Struct,
    as_read,
    decode,
    encode,
    is_partial,
    origin_of,
    raw_of,
    replace,
    set_condition,
    to_json,
)


class Probe(Struct):
    path: str = "/"


class Container(Struct):
    name: str
    image: str | None = None
    probe: Probe | None = None


class Route(Struct):
    host: str
    backends: list[str] | None = None


class ShopSpec(Spec):
    image: str
    containers: Annotated[list[Container], ListMap("name")] | None = None
    routes: list[Route] | None = None
    regions: dict[str, Route] | None = None
    matrix: list[list[Route]] | None = None
    raw: dict[str, Any] | None = None


class ShopStatus(Status):
    ready: int | None = None


class Shop(Resource[ShopSpec, ShopStatus], group="a.example.com", version="v1"):
    """A shop."""


class Naive(msgspec.Struct):
    """What a client without memory has."""

    name: str


TREE = {
    "apiVersion": "a.example.com/v1",
    "kind": "Shop",
    "metadata": {"name": "s", "newField": 1, "managedFields": [{"manager": "m", "fieldsV1": {"f:x": {}}, "new": 2}]},
    "spec": {
        "image": "i",
        "containers": [
            {"name": "web", "image": "w", "probe": {"path": "/", "unknownDeep": True}, "unknown": "web"},
            {"name": "log", "unknown": "log"},
        ],
        "routes": [{"host": "a", "unknown": "a"}, {"host": "b", "unknown": "b"}],
        "regions": {"eu": {"host": "e", "unknown": "eu"}, "us": {"host": "u", "unknown": "us"}},
        "matrix": [[{"host": "m", "unknown": "m"}]],
        "raw": {"free": {"form": [1, None]}},
        "unknown": {"anything": [{"at": "all"}]},
    },
    "status": {"ready": 1, "unknownStatus": "kept", "conditions": [{"type": "Ready", "status": "True", "x": 1}]},
    "unknownTop": "kept",
}
RAW = msgspec.json.encode(TREE)


def read() -> Shop:
    return decode(Shop, RAW)


def written(struct: Struct) -> dict[str, Any]:
    return msgspec.json.decode(encode(struct))


def changed(**spec: Any) -> dict[str, Any]:
    """The tree as read, with parts of its spec replaced."""
    return TREE | {"spec": TREE["spec"] | spec}


def test_the_loss_that_is_prevented():
    """A typed client writes back what it knows, and the rest is gone."""
    assert msgspec.json.encode(msgspec.json.decode(b'{"name":"a","unknown":1}', type=Naive)) == b'{"name":"a"}'


def test_writing_back_what_was_read_gives_the_same_bytes():
    assert encode(read()) == RAW


def test_changing_a_field_changes_that_field_alone():
    shop = read()
    shop.spec.image = "new"
    assert written(shop) == changed(image="new")


@pytest.mark.parametrize(
    "duplicate",
    [copy.copy, copy.deepcopy, lambda shop: pickle.loads(pickle.dumps(shop)), replace],
    ids=["copy", "deepcopy", "pickle", "replace"],
)
def test_a_copy_remembers(duplicate):
    """A hidden attribute would be lost by all of these."""
    shop = duplicate(read())
    shop.spec.image = "new"
    assert written(shop) == changed(image="new")


def test_deepcopy_is_independent():
    shop = read()
    other = copy.deepcopy(shop)
    other.spec.routes[0].host = "z"
    assert shop.spec.routes[0].host == "a"
    assert encode(shop) == RAW


def test_replace_of_a_nested_part_remembers():
    shop = read()
    shop.spec = replace(shop.spec, image="new")
    assert written(shop) == changed(image="new")


def test_a_part_moved_into_a_new_object_brings_its_unknown_fields():
    """Someone builds a new object from a part of an old one: the part is still whole."""
    made = Shop(metadata=ObjectMeta(name="n"), spec=replace(read().spec, image="new"))
    assert written(made)["spec"] == TREE["spec"] | {"image": "new"}
    assert written(made)["metadata"] == {"name": "n"}


def test_a_part_moved_within_an_object_brings_its_unknown_fields():
    shop = read()
    shop.spec.regions["asia"] = shop.spec.regions.pop("eu")
    us = TREE["spec"]["regions"]["us"]
    assert written(shop)["spec"]["regions"] == {"us": us, "asia": {"host": "e", "unknown": "eu"}}


def test_a_part_used_twice_is_written_twice():
    shop = read()
    shop.spec.matrix.append([shop.spec.routes[0]])
    assert written(shop)["spec"]["matrix"][1] == [{"host": "a", "unknown": "a"}]
    assert written(shop)["spec"]["routes"] == TREE["spec"]["routes"]


def test_items_keep_their_fields_when_a_list_is_reordered():
    shop = read()
    shop.spec.routes.reverse()
    shop.spec.containers.reverse()
    assert written(shop) == changed(routes=TREE["spec"]["routes"][::-1], containers=TREE["spec"]["containers"][::-1])


def test_removing_an_item_removes_that_item():
    """By index alone, the unknown fields of the first item would end up in the second."""
    shop = read()
    del shop.spec.routes[0]
    assert written(shop) == changed(routes=[{"host": "b", "unknown": "b"}])


def test_inserting_an_item_moves_the_others_whole():
    shop = read()
    shop.spec.routes.insert(0, Route(host="new"))
    assert written(shop) == changed(routes=[{"host": "new"}, *TREE["spec"]["routes"]])


def test_a_keyed_item_made_anew_takes_the_place_of_the_old():
    """`ListMap`: the key says which item is meant, also when a program builds it from nothing."""
    shop = read()
    shop.spec.containers = [Container(name="log", image="l")]
    assert written(shop) == changed(containers=[{"name": "log", "unknown": "log", "image": "l"}])


def test_a_keyed_item_with_a_new_key_is_new():
    shop = read()
    shop.spec.containers.append(Container(name="new"))
    assert written(shop)["spec"]["containers"] == [*TREE["spec"]["containers"], {"name": "new"}]


def test_an_unkeyed_item_made_anew_in_the_same_place_keeps_it():
    """The whole list was rebuilt, item for item: the places decide."""
    shop = read()
    shop.spec.routes = [Route(host="a2"), Route(host="b2")]
    assert written(shop) == changed(routes=[{"host": "a2", "unknown": "a"}, {"host": "b2", "unknown": "b"}])


def test_ambiguity_raises_instead_of_guessing():
    """One old item is left out, one is new: whose unknown fields are they?"""
    shop = read()
    shop.spec.routes = [shop.spec.routes[1], Route(host="new")]
    with pytest.raises(
        AmbiguousItem, match=r"spec\.routes: item 1 is new, and item 0, which contains fields .* is gone"
    ):
        encode(shop)


def test_there_is_no_ambiguity_without_unknown_fields():
    shop = decode(Shop, b'{"spec":{"image":"i","routes":[{"host":"a"},{"host":"b"}]}}')
    shop.spec.routes = [shop.spec.routes[1], Route(host="new")]
    assert written(shop)["spec"]["routes"] == [{"host": "b"}, {"host": "new"}]


def test_emptying_and_removing_a_list():
    shop = read()
    shop.spec.routes = []
    shop.spec.containers = None
    spec = {name: value for name, value in TREE["spec"].items() if name != "containers"}
    assert written(shop)["spec"] == spec | {"routes": []}


def test_nested_structs_keep_their_fields():
    shop = read()
    shop.spec.containers[0].probe.path = "/healthz"
    web = TREE["spec"]["containers"][0] | {"probe": {"path": "/healthz", "unknownDeep": True}}
    assert written(shop)["spec"]["containers"][0] == web


def test_a_struct_replaced_by_a_new_one_keeps_unknown_fields_of_its_place():
    """What a program sets whole is still a change of the fields it knows: another writer's fields stay."""
    shop = read()
    shop.spec.containers[0].probe = Probe(path="/new")
    assert written(shop)["spec"]["containers"][0]["probe"] == {"path": "/new", "unknownDeep": True}


def test_a_struct_removed_and_set_again_is_new():
    shop = read()
    shop.spec.containers[0].probe = None
    assert "probe" not in written(shop)["spec"]["containers"][0]


def test_free_form_json_is_kept_as_it_was():
    shop = read()
    shop.spec.raw["more"] = 1
    assert written(shop)["spec"]["raw"] == {"free": {"form": [1, None]}, "more": 1}


def test_conditions_are_set_without_losing_fields_of_others():
    shop = read()
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert set_condition(shop.status, Condition(type="Ready", status="False", reason="Why"), now=now)
    assert set_condition(shop.status, Condition(type="Other", status="True", reason="Why"), now=now)
    ready, other = written(shop)["status"]["conditions"]
    assert ready == {
        "type": "Ready",
        "status": "False",
        "x": 1,
        "reason": "Why",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    assert other["type"] == "Other"
    assert written(shop)["status"]["unknownStatus"] == "kept"


def test_an_object_made_by_a_program_is_written_as_declared():
    made = Shop(metadata=ObjectMeta(name="n"), spec=ShopSpec(image="i", containers=[Container(name="c")]))
    assert origin_of(made) is None
    assert raw_of(made) is None
    assert as_read(made) is None
    assert written(made)["spec"] == {"image": "i", "containers": [{"name": "c"}]}


def test_what_was_read_can_be_asked_for():
    shop = read()
    shop.spec.image = "new"
    assert raw_of(shop) == RAW
    assert as_read(shop) == TREE
    assert as_read(shop.spec) == TREE["spec"]


def test_to_json_belongs_to_the_caller():
    shop = read()
    tree = to_json(shop)
    tree["spec"]["image"] = "x"
    assert encode(shop) == RAW


def test_partial_objects_say_so():
    """A metadata-only read holds less than the server: a full update of it would lose the rest."""
    partial = decode(Shop, b'{"metadata":{"name":"a"}}', partial=True)
    assert is_partial(partial)
    assert is_partial(copy.deepcopy(partial))
    assert not is_partial(read())


HOSTILE = [
    b'{"spec":{"image":"i","\\u007forigin":{"ordinal":0,"document":0},"u":1}}',
    b'{"spec":{"image":"i","\\u007forigin":7,"routes":[{"host":"a","\\u007forigin":{"ordinal":9,"document":1}}]}}',
    b'{"spec":{"image":"i","raw":{"\\u007forigin":{"ordinal":0,"document":1},"x":1}}}',
    b'{"\\u007forigin":null,"metadata":{"labels":{"\\u007forigin":"x"}},"spec":{"image":"i"}}',
]


@pytest.mark.parametrize("raw", HOSTILE)
def test_a_document_cannot_forge_where_it_came_from(raw):
    """The hidden field that remembers has a wire name; a document that uses it is data like any other."""
    shop = decode(Shop, raw)
    assert msgspec.json.decode(encode(shop)) == msgspec.json.decode(raw)
    shop.spec.image = "new"
    expected = msgspec.json.decode(raw)
    expected["spec"]["image"] = "new"
    assert msgspec.json.decode(encode(shop)) == expected
    assert msgspec.json.decode(encode(copy.deepcopy(shop))) == expected
    assert raw_of(shop.spec) == raw


def test_a_name_that_occurs_twice_is_read_as_its_last():
    shop = decode(Shop, b'{"spec":{"image":"one","u":1},"spec":{"image":"two","u":2}}')
    shop.spec.image = "new"
    assert written(shop) == {"spec": {"image": "new", "u": 2}}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
UNKNOWN = st.dictionaries(st.sampled_from(["new", "x-y", "Zed", "\x7forigin", "größe"]), JSON, max_size=2)


def with_unknown(known: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.builds(lambda unknown, tree: unknown | tree, UNKNOWN, known)


ROUTES = st.lists(with_unknown(st.fixed_dictionaries({"host": st.text(max_size=2)})), max_size=4)
CONTAINERS = st.lists(
    with_unknown(
        st.fixed_dictionaries({"name": st.sampled_from("abcdef")}, optional={"image": st.none() | st.text(max_size=2)})
    ),
    max_size=4,
    unique_by=lambda item: item["name"],
)
SPECS = with_unknown(
    st.fixed_dictionaries(
        {},
        optional={
            "image": st.none() | st.text(max_size=3),
            "routes": st.none() | ROUTES,
            "containers": st.none() | CONTAINERS,
            "matrix": st.lists(ROUTES, max_size=2),
            "regions": st.dictionaries(st.text(max_size=2), with_unknown(st.just({"host": "h"})), max_size=2),
            "raw": st.dictionaries(st.text(max_size=2), JSON, max_size=2),
        },
    )
)


@settings(deadline=None, database=None)
@given(SPECS, st.randoms(use_true_random=False))
def test_any_object_survives_any_usual_change(spec, random):
    """Random objects with unknown fields anywhere: shuffled, shortened and changed, nothing unknown is lost or moved."""
    raw = msgspec.json.encode({"spec": spec})
    shop = decode(Shop, raw)
    assert msgspec.json.decode(encode(shop)) == {"spec": spec}
    expected = msgspec.json.decode(raw)
    shop.spec.image, expected["spec"]["image"] = "changed!", "changed!"
    if shop.spec.routes:
        order = random.sample(range(len(shop.spec.routes)), random.randint(0, len(shop.spec.routes)))
        shop.spec.routes = [shop.spec.routes[index] for index in order]
        expected["spec"]["routes"] = [expected["spec"]["routes"][index] for index in order]
    for container, tree in zip(shop.spec.containers or [], expected["spec"].get("containers") or [], strict=True):
        container.image, tree["image"] = "changed!", "changed!"
    assert msgspec.json.decode(encode(copy.deepcopy(shop))) == expected
