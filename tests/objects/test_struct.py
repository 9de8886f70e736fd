"""Declaring structs and resources: names, required fields, inheritance, and the errors that say what to write."""

from __future__ import annotations

import enum
import sys
import types
from typing import Annotated, Any, ClassVar, Literal

import msgspec
import pytest

from steersman.markers import ListMap, Pattern
from steersman.objects import (
    Condition,
    Object,
    ObjectMeta,
    PrinterColumn,
    Resource,
    ScaleSubresource,
    Spec,
    Status,
    Struct,
    decode,
    encode,
    field,
)
from steersman.objects.hints import declared_hints, wire_names


class Port(Struct):
    name: str
    container_port: int = 80


class SiteSpec(Spec):
    image: str
    pod_ip: str | None = field(default=None, name="podIP")
    from_: str | None = None
    later: Later | None = None
    limit: ClassVar[int] = 3


class Later(Struct):
    """Defined after the class that names it."""

    value: int | None = None


class SiteStatus(Status):
    ready_replicas: int = 0


class Site(Resource[SiteSpec, SiteStatus], group="web.example.com", version="v1", short_names=("st",)):
    """A web site."""


def test_names_are_snake_case_in_python_and_camel_case_on_the_wire():
    assert encode(Port(name="http", container_port=8080)) == b'{"name":"http","containerPort":8080}'


def test_a_wire_name_of_its_own_and_a_keyword():
    """``podIP`` is no camel case, and ``from`` no Python name."""
    assert wire_names(SiteSpec) == {"image": "image", "pod_ip": "podIP", "from_": "from", "later": "later"}
    assert encode(SiteSpec(image="i", pod_ip="1.2.3.4", from_="x")) == b'{"image":"i","podIP":"1.2.3.4","from":"x"}'


def test_a_required_field_cannot_be_left_out_by_a_program():
    """Otherwise the mistake would surface as a refusal of the server, far from its cause."""
    with pytest.raises(TypeError, match=r"SiteSpec\(\.\.\.\) needs image: the type has no default for it"):
        SiteSpec()


def test_fields_are_keyword_only():
    """A field added between two others must not change what a call means."""
    with pytest.raises(TypeError):
        Port("http", 80)


def test_a_forward_reference_is_resolved_when_it_is_first_needed():
    spec = decode(SiteSpec, b'{"image":"i","later":{"value":3}}')
    assert isinstance(spec.later, Later)
    assert spec.later.value == 3


def test_a_class_variable_is_no_field():
    assert "limit" not in SiteSpec.__struct_fields__
    assert SiteSpec.limit == 3


def test_a_name_that_only_exists_inside_a_function_is_explained():
    """Annotations are resolved in the module: the error says so instead of a bare NameError."""

    class Inner(Struct):
        x: int

    class Outer(Struct):
        inner: Inner | None = None

    with pytest.raises(TypeError, match=r"uses 'Inner', which .* does not define; define it in the module"):
        declared_hints(Outer)


def test_a_module_without_postponed_annotations_works_the_same():
    """The annotations are then objects, not texts."""
    module = types.ModuleType("eager_annotations")
    sys.modules[module.__name__] = module
    try:
        exec(
            "from steersman.objects import Resource, Spec, Struct\n"
            "class Part(Struct):\n    host: str\n    labels: dict[str, str]\n"
            "class WholeSpec(Spec):\n    parts: list[Part]\n    count: int = 1\n"
            "class Whole(Resource[WholeSpec, None], group='a.example.com', version='v1'): pass\n",
            module.__dict__,
        )
        whole = decode(module.Whole, b'{"spec":{"parts":[{"host":"a","unknown":1}]}}')
        assert whole.spec.parts[0].labels == {}
        assert whole.spec.count == 1
        assert encode(whole) == b'{"spec":{"parts":[{"host":"a","unknown":1}]}}'
    finally:
        del sys.modules[module.__name__]


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class PaintSpec(Spec):
    color: Color | None = None


def test_an_enum_is_refused_with_the_literal_to_write():
    """An Enum has no place for the value that a newer server sends."""
    with pytest.raises(TypeError, match=r"class \w+.*: \w+: .*Color is an Enum.*write Literal\['red', 'blue'\]"):

        class Paint(Resource[PaintSpec, None], group="a.example.com", version="v1"):
            pass


class House(Struct):
    paint: PaintSpec | None = None


def test_an_enum_deep_inside_is_refused_at_every_read():
    for _ in range(2):
        with pytest.raises(TypeError, match="Color is an Enum"):
            decode(House, b"{}")


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("(?=a)b", r"\(\?=a.*Go and Python share"),
        (r"(a)\1", "back references"),
        (r"\pL", "Unicode classes"),
        ("a*+", "repetition of a repetition"),
        ("a{1001}", "more than 1000 repetitions"),
        ("(a{100}){20}", "more than 1000 repetitions"),
        ("a{,3}", "write {0,n}"),
        (r"x\Z", r"write \$"),
        ("[a", "does not close"),
        ("(a", "not a regular expression"),
        (r"\u0041", "do not share"),
    ],
)
def test_a_pattern_that_go_and_python_read_differently_is_refused_where_it_is_written(expression, why):
    """The server would refuse the CRD, or worse, enforce something else."""
    with pytest.raises(ValueError, match=why):
        Pattern(expression)


@pytest.mark.parametrize(
    "expression",
    [r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "[*+]+", r"\++", "[[:alpha:]]", r"^\d{1,3}%?$", "(?i)^x(?:y|z)$", "[]]"],
)
def test_ordinary_patterns_are_accepted(expression):
    Pattern(expression)


def test_the_options_of_a_class():
    options = Site.__resource__
    assert (options.group, options.version, options.kind, options.plural) == ("web.example.com", "v1", "Site", "sites")
    assert options.api_version == "web.example.com/v1"
    assert (str(Site.gvk()), str(Site.gvr())) == ("web.example.com/v1 Site", "web.example.com/v1/sites")
    site = Site(metadata=ObjectMeta(name="a"), spec=SiteSpec(image="i"))
    assert (site.api_version, site.kind) == ("web.example.com/v1", "Site")


def test_an_unknown_option_is_an_error():
    with pytest.raises(TypeError, match="unknown option shortnames; the options are"):

        class Wrong(Resource[SiteSpec, None], group="a.example.com", version="v1", shortnames=("x",)):
            pass


def test_options_without_a_kind_are_an_error():
    with pytest.raises(TypeError, match="derive the class from Resource"):

        class Wrong(Struct, group="a.example.com", version="v1"):
            pass


def test_a_group_without_a_version_is_an_error():
    with pytest.raises(TypeError, match="pass both"):

        class Wrong(Resource[SiteSpec, None], group="a.example.com"):
            pass


class Bare(Resource[SiteSpec, None], group="a.example.com", version="v1"):
    """A kind without a status."""


def test_a_kind_without_a_status_reads_and_keeps_one_that_the_server_has():
    """The server's CRD may have grown a status since."""
    bare = decode(Bare, b'{"spec":{"image":"i"},"status":{"phase":"Ready"}}')
    bare.spec.image = "j"
    assert msgspec.json.decode(encode(bare)) == {"spec": {"image": "j"}, "status": {"phase": "Ready"}}
    made = Bare(metadata=ObjectMeta(name="a"), spec=SiteSpec(image="i"))
    assert b"status" not in encode(made)


class Base(Struct):
    name: str
    count: int = 1
    note: str | None = None


class Derived(Base):
    name: str | None = None
    count: int
    extra: str = "x"


def test_a_derived_class_may_declare_a_field_anew():
    """What the base required or defaulted must not linger."""
    with pytest.raises(TypeError, match="needs count"):
        Derived()
    assert encode(Derived(count=2)) == b'{"count":2,"extra":"x"}'
    assert set(declared_hints(Derived)) == {"name", "count", "note", "extra"}


class Versioned(Site, group="web.example.com", version="v2", storage=False):
    """The same kind in another version, derived."""


def test_a_resource_may_derive_from_a_resource():
    assert Versioned.__resource__.version == "v2"
    made = Versioned(metadata=ObjectMeta(name="a"), spec=SiteSpec(image="i"))
    assert made.api_version == "web.example.com/v2"
    assert isinstance(decode(Versioned, b'{"spec":{"image":"i"}}').spec, SiteSpec)


class Config(Object, group="a.example.com", version="v1"):
    """A kind without spec and status, like a ConfigMap."""

    data: dict[str, str] | None = None


def test_an_object_needs_no_spec():
    config = decode(Config, b'{"metadata":{"name":"a"},"data":{"k":"v"}}')
    assert config.data == {"k": "v"}
    assert config.key == ("", "a")


class Frozen(Struct, frozen=True):
    value: int


def test_a_struct_may_be_frozen():
    assert hash(Frozen(value=1)) == hash(Frozen(value=1))


class Hidden(Struct):
    token: str | None = None

    __sensitive__: ClassVar[frozenset[str]] = frozenset({"token"})


def test_secrets_and_unset_fields_are_not_printed():
    assert repr(Hidden(token="s3cret")) == "Hidden(token=<hidden>)"
    assert repr(SiteSpec(image="i")) == "SiteSpec(image='i')"


class Listing(Struct):
    items: Annotated[list[Port], ListMap("name")] | None = None
    mode: Literal["a", "b"] = "a"
    anything: Any = None


def test_equality_is_by_value_whether_read_or_made():
    """A test may compare what a server answered with what it expects."""
    read = decode(Listing, b'{"items":[{"name":"http","containerPort":80}],"mode":"a","unknown":1}')
    assert read == Listing(items=[Port(name="http")])
    assert read != Listing(items=[Port(name="other")])


def test_a_list_map_without_keys_is_an_error():
    with pytest.raises(TypeError, match="ListMap needs the wire names"):
        ListMap()


def test_options_are_values():
    assert ScaleSubresource() == ScaleSubresource(spec_replicas_path=".spec.replicas")
    assert PrinterColumn(name="A", type="string", json_path=".a").priority == 0


def test_a_condition_is_typed():
    condition = decode(Condition, b'{"type":"Ready","status":"Maybe","reason":"R"}')
    assert condition.status == "Maybe"
    assert condition.message == ""


def test_slips_in_a_constructor_are_named():
    class Slipped(Struct):
        image: str
        min_replicas: int = 1

    with pytest.raises(TypeError, match=r"has no field imagee; did you mean image\?"):
        Slipped(imagee="x")
    with pytest.raises(TypeError, match=r"has no field minReplicas; did you mean min_replicas\?"):
        Slipped(image="x", minReplicas=3)
    with pytest.raises(TypeError, match="takes its fields by name"):
        Slipped("x")


def test_a_status_is_made_once():
    """An operator sets fields of the status of a new object, and of one that has a status already."""
    site = Site(metadata=ObjectMeta(name="home"), spec=SiteSpec(image="nginx"))
    site.ensure_status().ready_replicas = 3
    assert site.ensure_status() is site.status
    assert site.status == SiteStatus(ready_replicas=3)


class Silent(Resource[SiteSpec, None], group="web.example.com", version="v1"):
    """A kind without a status."""


def test_a_kind_without_a_status_gets_none():
    silent = Silent(metadata=ObjectMeta(name="home"), spec=SiteSpec(image="nginx"))
    with pytest.raises(TypeError, match=r"Silent has no status: declare one"):
        silent.ensure_status()


def test_only_is_an_intent_with_nothing_else():
    class Whole(Struct):
        image: str
        replicas: int = 1
        items: list[str] = []  # noqa: RUF012 - copied for each struct

    assert encode(Whole.only(replicas=1)) == b'{"replicas":1}'
    with pytest.raises(TypeError, match="has no field imag"):
        Whole.only(imag="x")


def test_a_value_without_a_type_is_refused():
    with pytest.raises(TypeError, match="write replicas: int = 3"):

        class Untyped(Struct):
            replicas = 3
