"""What a program did not change is written as it was read, in the corners where that is not obvious."""

from datetime import datetime
from typing import Annotated, Any

import pytest

from steersman import Quantity, Struct
from steersman.errors import AmbiguousItem, ApiError, DecodeError
from steersman.markers import ListMap
from steersman.objects import decode, encode, to_json


class Port(Struct):
    port: int
    protocol: str | None = None


class Thing(Struct):
    limits: dict[str, Quantity] | None = None
    amounts: list[Quantity] | None = None
    times: list[datetime] | None = None
    ports: Annotated[list[Port], ListMap("port", "protocol")] | None = None
    one_key: Annotated[list[Port], ListMap("port")] | None = None
    child: Port | None = None
    anything: Any = None


def test_a_number_stays_a_number_when_its_neighbor_changes():
    """A quantity may be a number on the wire; our type prints text."""
    thing = decode(Thing, b'{"limits":{"cpu":1,"memory":"1Gi","disk":2.50},"amounts":[1,"2",3.5]}')
    thing.limits["memory"] = Quantity("2Gi")
    thing.amounts.insert(0, Quantity("7"))
    assert to_json(thing) == {
        "limits": {"cpu": 1, "memory": "2Gi", "disk": 2.5},
        "amounts": ["7", 1, "2", 3.5],
    }


def test_a_time_keeps_its_form_when_its_neighbor_changes():
    thing = decode(Thing, b'{"times":["2026-01-31T12:00:00.5+02:00","2026-01-31T12:00:00Z"]}')
    thing.times.reverse()
    assert to_json(thing)["times"] == ["2026-01-31T12:00:00Z", "2026-01-31T12:00:00.5+02:00"]


@pytest.mark.parametrize(
    ("before", "after"), [(b"1", True), (b"true", 1), (b"[0]", [False]), (b'{"a":0}', {"a": False})]
)
def test_true_is_not_one(before, after):
    """Python takes them for equal; a change from one to the other is a change all the same."""
    thing = decode(Thing, b'{"anything":' + before + b"}")
    thing.anything = after
    assert encode(thing) == encode(Thing(anything=after))


def test_a_struct_inside_free_form_json_keeps_its_fields():
    thing = decode(Thing, b'{"child":{"port":80,"nodePort":30080}}')
    thing.anything = {"first": thing.child, "others": [thing.child, Port(port=1)]}
    kept = {"port": 80, "nodePort": 30080}
    assert to_json(thing)["anything"] == {"first": kept, "others": [kept, {"port": 1}]}


PORTS = (
    b'[{"port":53,"protocol":"UDP","nodePort":1},{"port":53,"protocol":"TCP","nodePort":2},{"port":80,"nodePort":3}]'
)


def test_an_item_made_anew_is_recognized_by_its_whole_key():
    thing = decode(Thing, b'{"ports":' + PORTS + b"}")
    thing.ports = [Port(port=53, protocol="TCP"), Port(port=80), Port(port=53, protocol="UDP")]
    assert [item["nodePort"] for item in to_json(thing)["ports"]] == [2, 3, 1]


def test_a_key_that_leaves_a_part_to_the_server_is_enough_if_it_is_unique():
    """The server fills in the protocol: a program that builds the list anew does not repeat it."""
    raw = b'{"ports":[{"port":53,"protocol":"UDP","nodePort":1},{"port":80,"protocol":"TCP","nodePort":3}]}'
    thing = decode(Thing, raw)
    thing.ports = [Port(port=80)]
    assert to_json(thing)["ports"] == [{"port": 80, "nodePort": 3}]


@pytest.mark.parametrize("field", ["ports", "oneKey"])
def test_a_key_that_fits_several_is_not_guessed(field):
    """Both would have taken the place of the first, and the second's fields would be gone."""
    thing = decode(Thing, b'{"%s":%s}' % (field.encode(), PORTS))
    setattr(thing, "ports" if field == "ports" else "one_key", [Port(port=53), Port(port=53)])
    with pytest.raises(AmbiguousItem, match="do not distinguish them"):
        encode(thing)


def test_a_key_that_fits_several_is_fine_where_nothing_can_be_lost():
    thing = decode(Thing, b'{"ports":[{"port":53,"protocol":"UDP"},{"port":53,"protocol":"TCP"}]}')
    thing.ports = [Port(port=53)]
    assert to_json(thing)["ports"] == [{"port": 53}]


@pytest.mark.parametrize("unknown", [b'"\xff"', b"1e999"])
def test_an_unknown_field_that_cannot_be_read_is_an_error_when_it_must_be_written(unknown):
    """Reading passes it over; writing it back is not possible, and not silently left out."""
    thing = decode(Thing, b'{"anything":1,"unknown":' + unknown + b"}")
    thing.anything = 2
    with pytest.raises(DecodeError, match="cannot write Thing"):
        encode(thing)


def test_what_is_nested_too_deeply_is_an_error():
    nested: Any = 1
    for _ in range(100_000):
        nested = [nested]
    with pytest.raises(ApiError, match="nested too deeply"):
        encode(Thing(anything=nested))
    thing = decode(Thing, b'{"anything":1}')
    thing.anything = nested
    with pytest.raises(ApiError, match="nested too deeply"):
        encode(thing)
    while isinstance(nested, list):  # freed level by level: all at once would need as many frames
        nested = nested.pop()
