"""Unset is not default: what was not set is not sent, what was set is sent, and null can be said.

msgspec's own ``omit_defaults`` drops an explicit 0, "" or [] that equals the default, so that a user who sets the default
on purpose never owns the field. Each test shows one such loss that does not happen.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
import pytest
from msgspec import UNSET, UnsetType

from steersman.markers import Nullable
from steersman.objects import ObjectMeta, Quantity, Resource, Spec, Struct, decode, encode, replace


class Plain(msgspec.Struct, omit_defaults=True):
    """What one gets without our metaclass."""

    replicas: int = 0


class Probe(Struct):
    path: str = "/"
    seconds: int = 10


class AppSpec(Spec):
    image: str
    replicas: int = 0
    prefix: str = ""
    args: list[str] = []  # noqa: RUF012 - copied for every object, as a test below shows
    labels: dict[str, str] = {}  # noqa: RUF012
    enabled: bool = False
    cpu: Quantity = Quantity("500m")
    probe: Probe = Probe()
    optional: int | None = None
    tags: list[str] | None = None
    nothing: Annotated[int, Nullable()] | UnsetType | None = UNSET


class App(Resource[AppSpec, None], group="a.example.com", version="v1"):
    """An app."""


EVERYTHING = {
    "image": "i",
    "replicas": 0,
    "prefix": "",
    "args": [],
    "labels": {},
    "enabled": False,
    "cpu": "500m",
    "probe": {"path": "/", "seconds": 10},
}


def sent(struct: Struct) -> dict:
    return msgspec.json.decode(encode(struct))


def test_the_loss_that_is_prevented():
    """The bare library leaves out what equals the default, though it was set."""
    assert msgspec.json.encode(Plain(replicas=0)) == b"{}"


def test_a_default_is_always_sent():
    """Create and apply send it, so that the applier owns it and a later change of the default changes nothing."""
    assert sent(AppSpec(image="i")) == EVERYTHING


@pytest.mark.parametrize("value", [0, 5])
def test_a_value_equal_to_the_default_is_sent(value):
    assert sent(AppSpec(image="i", replicas=value))["replicas"] == value


@pytest.mark.parametrize(("field", "value"), [("optional", 0), ("tags", [])])
def test_an_explicit_zero_or_empty_list_of_an_optional_field_is_sent(field, value):
    assert sent(AppSpec(image="i", **{field: value}))[field] == value


def test_none_is_unset_and_is_not_sent():
    assert sent(AppSpec(image="i", optional=None)).keys() == EVERYTHING.keys()


def test_defaults_are_not_shared_between_objects():
    """A mutable default must not leak from one object into the next."""
    one, other = AppSpec(image="i"), AppSpec(image="i")
    one.args.append("x")
    one.probe.path = "/x"
    one.labels["a"] = "b"
    assert sent(other) == EVERYTHING


def test_a_read_object_reads_as_its_default_where_nothing_stands():
    app = decode(AppSpec, b'{"image":"i"}')
    assert (app.replicas, app.args, app.probe.seconds, app.cpu) == (0, [], 10, Quantity("500m"))
    assert app.optional is None


def test_reading_and_writing_adds_no_default():
    """An update that changed nothing must not take over unset fields."""
    assert encode(decode(AppSpec, b'{"image":"i"}')) == b'{"image":"i"}'


def test_changing_one_field_adds_no_other_default():
    app = decode(AppSpec, b'{"image":"i"}')
    app.replicas = 3
    assert sent(app) == {"image": "i", "replicas": 3}


def test_a_change_inside_a_defaulted_struct_sends_that_struct():
    app = decode(AppSpec, b'{"image":"i"}')
    app.probe.seconds = 20
    assert sent(app) == {"image": "i", "probe": {"path": "/", "seconds": 20}}


def test_a_field_set_back_to_what_was_read_is_no_change():
    app = decode(AppSpec, b'{"image":"i","optional":1}')
    app.optional = 2
    app.optional = 1
    assert encode(app) == b'{"image":"i","optional":1}'


def test_unsetting_a_field_removes_it():
    app = decode(AppSpec, b'{"image":"i","optional":1,"tags":["a"]}')
    app.optional = None
    assert sent(app) == {"image": "i", "tags": ["a"]}


def test_a_number_keeps_the_way_it_was_written():
    """1000m and 1 are equal; a write that changed nothing must not rewrite it and take the field over."""
    app = decode(AppSpec, b'{"image":"i","cpu":"1000m"}')
    assert app.cpu == Quantity("1")
    assert encode(app) == b'{"image":"i","cpu":"1000m"}'


def test_null_can_be_said():
    """A field that is unset by default and nullable: None is the value null."""
    assert sent(AppSpec(image="i", nothing=None))["nothing"] is None
    assert "nothing" not in sent(AppSpec(image="i"))
    assert sent(AppSpec(image="i", nothing=4))["nothing"] == 4


def test_null_in_a_map_is_sent():
    """A merge patch removes a key with null."""

    assert msgspec.json.decode(encode(ObjectMeta(labels={"gone": None}))) == {"labels": {"gone": None}}


def test_null_that_was_read_stays_until_it_is_changed():
    """Kubernetes keeps null where a schema is nullable; an unrelated write must not turn it into an empty list."""
    raw = b'{"image":"i","args":null,"probe":null,"tags":null,"nothing":null}'
    app = decode(AppSpec, raw)
    assert (app.args, app.probe.seconds, app.tags, app.nothing) == ([], 10, None, None)
    assert encode(app) == raw
    app.image = "j"
    assert sent(app) == {"image": "j", "args": None, "probe": None, "tags": None, "nothing": None}
    app.args = ["x"]
    app.probe.path = "/x"
    assert sent(app)["args"] == ["x"]
    assert sent(app)["probe"] == {"path": "/x", "seconds": 10}


def test_replace_keeps_what_was_not_named():
    app = decode(AppSpec, b'{"image":"i","optional":0}')
    assert sent(replace(app, image="j")) == {"image": "j", "optional": 0}


def test_a_required_list_reads_as_empty_and_is_not_added():
    class_spec = decode(Needs, b"{}")
    assert (class_spec.names, class_spec.options) == ([], {})
    assert class_spec.title is UNSET
    assert encode(class_spec) == b"{}"


class Needs(Struct):
    names: list[str]
    options: dict[str, str]
    title: str
