"""Lenient decoding: what a server holds can be read, whatever the type demands; what cannot is an error of its own.

A strict reader breaks an informer on the first object that was stored before a constraint was added, or by a newer
version. Each test reads something that strictness would refuse.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal

import msgspec
import pytest

from steersman.errors import ApiError, DecodeError
from steersman.markers import Immutable, Maximum, MaxLength, Minimum, MinItems, Pattern
from steersman.objects import (
    IntOrString,
    MicroTime,
    ObjectMeta,
    Quantity,
    Resource,
    Spec,
    Status,
    Struct,
    decode,
    encode,
)


class Part(Struct):
    name: str
    size: Annotated[int, Minimum(1)] = 1


class BoxSpec(Spec):
    image: Annotated[str, MaxLength(3), Pattern("^[a-z]+$"), Immutable()]
    mode: Literal["fast", "slow"] = "fast"
    level: Literal[1, 2] = 1
    replicas: Annotated[int, Minimum(0), Maximum(5)] = 1
    parts: Annotated[list[Part], MinItems(1)] | None = None
    port: IntOrString = 80
    cpu: Quantity | None = None
    since: datetime | None = None
    seen: MicroTime | None = None
    data: bytes | None = None
    ratio: float | None = None


class BoxStatus(Status):
    phase: Literal["Pending", "Ready"] | None = None


class Box(Resource[BoxSpec, BoxStatus], group="a.example.com", version="v1"):
    """A box."""


def box(spec: dict, **more) -> Box:
    return decode(Box, msgspec.json.encode({"metadata": {"name": "b", "namespace": "n"}, "spec": spec, **more}))


def test_an_unknown_value_of_a_closed_set_is_read():
    """A newer server may know more modes."""
    read = box({"image": "i", "mode": "turbo", "level": 9}, status={"phase": "Melting"})
    assert (read.spec.mode, read.spec.level, read.status.phase) == ("turbo", 9, "Melting")
    assert msgspec.json.decode(encode(read))["spec"]["mode"] == "turbo"


@pytest.mark.parametrize(
    "spec",
    [
        {"image": "far-too-long"},
        {"image": "UPPER"},
        {"image": "i", "replicas": 99},
        {"image": "i", "replicas": -1},
        {"image": "i", "parts": []},
        {"image": "i", "parts": [{"name": "p", "size": 0}]},
    ],
)
def test_constraints_are_not_checked(spec):
    """Objects stored before a constraint existed are normal: Kubernetes ratchets them."""
    assert msgspec.json.decode(encode(box(spec)))["spec"] == spec


def test_absent_required_fields_are_read_as_unset():
    read = box({})
    assert read.spec.image is msgspec.UNSET
    assert encode(read) == b'{"metadata":{"name":"b","namespace":"n"},"spec":{}}'


def test_an_absent_spec_is_read_as_unset():
    read = decode(Box, b'{"metadata":{"name":"b"}}')
    assert read.spec is msgspec.UNSET
    assert read.metadata.name == "b"


def test_null_where_a_value_is_expected_reads_as_absent():
    """Go's JSON reads null as absent, so Kubernetes objects may hold it anywhere."""
    read = box({"image": None, "replicas": None, "mode": None, "parts": None, "port": None})
    assert read.spec.image is msgspec.UNSET
    assert (read.spec.replicas, read.spec.mode, read.spec.parts, read.spec.port) == (1, "fast", None, 80)


def test_unknown_fields_are_read_over():
    assert box({"image": "i", "new": {"deep": [1]}}, extra=1).spec.image == "i"


def test_int_or_string_keeps_which():
    assert box({"image": "i", "port": 80}).spec.port == 80
    assert box({"image": "i", "port": "http"}).spec.port == "http"


def test_garbage_quantities_do_no_harm_until_a_number_is_needed():
    read = box({"image": "i", "cpu": "lots"})
    assert str(read.spec.cpu) == "lots"
    with pytest.raises(ValueError, match="lots"):
        _ = read.spec.cpu + 1


def test_times_are_read_with_any_fraction():
    read = box({"image": "i", "since": "2026-01-31T12:00:00.5Z", "seen": "2026-01-31T12:00:00.123456789Z"})
    assert read.spec.since == datetime(2026, 1, 31, 12, 0, 0, 500000, tzinfo=UTC)
    assert isinstance(read.spec.seen, MicroTime)
    assert str(read.spec.seen) == "2026-01-31T12:00:00.123456Z"


def test_bytes_are_base64():
    assert box({"image": "i", "data": "YWJj"}).spec.data == b"abc"


def test_a_whole_number_is_read_as_a_float():
    assert box({"image": "i", "ratio": 2}).spec.ratio == 2.0


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (
            b'{"metadata":{"name":"b","namespace":"n"},"spec":{"replicas":"three"}}',
            r"cannot decode Box n/b: .*spec.replicas",
        ),
        (b'{"metadata":{"name":"b"},"spec":[]}', r"cannot decode Box b: .*\$\.spec.*may be newer than the type"),
        (b"[]", "cannot decode Box: "),
        (b"{", "cannot decode Box from 1 bytes"),
        (b"", "cannot decode Box from 0 bytes"),
        (b'{"metadata":{"name":"\xff"}}', "cannot decode Box from 25 bytes"),
        (b"<html>", "cannot decode Box from 6 bytes"),
    ],
)
def test_what_cannot_be_read_is_an_error_of_that_object(raw, said):
    """The error names the object, so that a list or a watch can go on without it."""
    with pytest.raises(DecodeError, match=said) as caught:
        decode(Box, raw)
    assert isinstance(caught.value, ApiError)


def test_one_bad_object_does_not_disturb_the_next():
    with pytest.raises(DecodeError):
        decode(Box, b'{"spec":{"replicas":[]}}')
    assert box({"image": "i", "unknown": 1}).spec.image == "i"


def test_hostile_depth_is_a_decode_error():
    deep = b'{"metadata":{"name":"b"},"spec":{"image":"i","x":' + b"[" * 100_000 + b"]" * 100_000 + b"}}"
    with pytest.raises(DecodeError):
        decode(Box, deep)


def test_a_wrong_kind_is_read_as_it_says_of_itself():
    """Which kind it is is checked by who asked for it."""
    assert decode(Box, b'{"kind":"Other","apiVersion":"x/v1","metadata":{}}').kind == "Other"


def test_made_metadata_is_not_checked():
    assert ObjectMeta(name="").name == ""
