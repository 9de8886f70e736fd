"""`problems()` and the server agree about every value: random types, random values, both verdicts compared.

`samples.portions` says how many values there are, and of which types.
"""

from __future__ import annotations

import contextlib
import types
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
import pytest
import pytest_asyncio
from hypothesis import HealthCheck, Phase, given, seed, settings, strategies as st

from samples import portions
from steersman.errors import DecodeError
from steersman.markers import (
    Format,
    Int32,
    ListMap,
    ListSet,
    MapAtomic,
    Maximum,
    MaxItems,
    MaxLength,
    MaxProperties,
    Minimum,
    MinItems,
    MinLength,
    MinProperties,
    MultipleOf,
    Nullable,
    Pattern,
    PreserveUnknownFields,
)
from steersman.objects import IntOrString, MicroTime, Quantity, Resource, Spec, Struct, decode
from steersman.schemas import admitted, crd_for, problems, schema_for, validate_tree

KINDS = 6
VALUES = portions.count(sample=60, of=300)
SEED = portions.seed_of("agreement")

# --- random types ------------------------------------------------------------------------------------------------------

PATTERNS = ("^[a-z]+$", "^(a|b)*$", r"\d{2}", r"^[^\s]*$", "^[[:alpha:]_-]{1,4}$", "x$", r"^\w+\.\w+$", "^.?$")
FORMATS = {
    "date-time": (
        "2024-02-29T12:00:00Z",
        "2024-02-29t23:59:59.5+01:00",
        "2023-02-29T00:00:00Z",
        "2024-01-01T24:00:00Z",
    ),
    "date": ("2024-02-29", "2023-02-29", "2024-1-1", "0000-01-01"),
    "byte": ("", "YQ==", "YQ=", "YWJj", "_-==", "YWJjZA==\n"),
    "ipv4": ("10.0.0.1", "010.0.0.01", "256.1.1.1", "1.2.3", "::ffff:1.2.3.4", "1.2.3.4 "),
    "ipv6": ("::1", "fe80::1%eth0", "1.2.3.4", "2001:db8::68", "::1.2.3.04", "1:2:3:4:5:6:7:8:9"),
    "cidr": ("10.0.0.0/8", "010.0.0.0/08", "10.0.0.0/33", "::/0", "::/129", "10.0.0.0", "1.2.3.4/"),
    "mac": ("00:00:5e:00:53:01", "0000.5e00.5301", "00-00-5e-00-53-01", "00005e005301", "00:00:5e-00:53:01", "0"),
    "uuid": ("123e4567-e89b-12d3-a456-426614174000", "123e4567e89b12d3a456426614174000", "123E4567", "{}"),
    "uuid4": ("123e4567-e89b-42d3-a456-426614174000", "123e4567-e89b-12d3-a456-426614174000"),
    "email": ("a@b.c", "Bob <bob@x.y>", "a@b@c", "@b", "a..b@c", '"a b"@c', "a@[1.2.3.4]", "a@b (c)", "a", ""),
    "uri": (
        "http://a.b/c?d#e",
        "/rooted",
        "rel/ative",
        "mailto:x@y",
        "http://[::1]:80",
        "http://a:b",
        "ht tp:",
        "*",
        ":",
    ),
    "hostname": ("example.com", "foo-bar", "a-b.example.com", "-a.com", "a", "ünï.example.org", "a.b1", "x" * 64),
    "duration": ("1h30m", "5 min", "3 weeks", "1.5h", "-2s", "x", "", "99999999999999999999s", "2d", "1 fortnight"),
    "password": ("", "secret"),
    "isbn": ("978-3-8362-2119-1", "3 401 01319 X", "3836221190", "x"),
    "creditcard": ("4220855426222389", "4220-8554-2622-2389", "4220855426213389"),
    "hexcolor": ("#fff", "CCccCC", "#ff", "fff0"),
    "rgbcolor": ("rgb(0,31,255)", "rgb(0, 31 , 255)", "rgb(256,0,0)", "rgb(01,0,0)"),
    "ssn": ("111-22-3333", "111 22 3333", "111223333"),
    "bsonobjectid": ("507f1f77bcf86cd799439011", "507f"),
    "k8s-short-name": ("a-b", "A", "-a", "a" * 64),
    "k8s-long-name": ("a.b-c", "a..b", "a" * 254),
    "made-up": ("anything",),
}
SMALL = st.integers(0, 4)


def marked(kind: Any, *markers: Any) -> Any:
    """`Annotated`, with any number of markers."""
    return Annotated[(kind, *markers)] if markers else kind


@st.composite
def texts(draw: st.DrawFn) -> Any:
    """A type of strings."""
    shape = draw(st.sampled_from(["plain", "length", "pattern", "format", "literal", "both"]))
    if shape == "literal":
        return Literal[tuple(draw(st.lists(st.sampled_from(["a", "b", "", "é", "A b"]), min_size=1, unique=True)))]
    markers: list[Any] = []
    if shape in {"length", "both"}:
        low = draw(SMALL)
        markers += [MinLength(low), MaxLength(low + draw(SMALL))]
    if shape in {"pattern", "both"}:
        markers.append(Pattern(draw(st.sampled_from(PATTERNS))))
    if shape == "format":
        markers.append(Format(draw(st.sampled_from(list(FORMATS)))))
    return marked(str, *markers)


@st.composite
def numbers(draw: st.DrawFn) -> Any:
    """A type of numbers."""
    kind = draw(st.sampled_from([int, Int32, float, marked(float, Format("float"))]))
    whole = kind in {int, Int32}
    bound = (
        st.integers(-5, 5) if whole else st.one_of(st.integers(-5, 5), st.sampled_from([-0.5, 0.1, 0.25, 1.5, 2.75]))
    )
    markers: list[Any] = []
    if draw(st.booleans()):
        markers.append(Minimum(draw(bound), exclusive=draw(st.booleans())))
    if draw(st.booleans()):
        markers.append(Maximum(draw(bound), exclusive=draw(st.booleans())))
    if draw(st.booleans()):
        factor = st.sampled_from([1, 2, 3] if whole else [0.1, 0.01, 0.5, 2, 1.5])
        markers.append(MultipleOf(draw(factor)))
    return marked(kind, *markers)


def scalars() -> st.SearchStrategy[Any]:
    others: list[Any] = [bool, Quantity, IntOrString, datetime, MicroTime, bytes, Literal[1, 2]]
    return st.one_of(texts(), numbers(), st.sampled_from(others))


@st.composite
def structs(draw: st.DrawFn, depth: int) -> type[Struct]:
    """A struct class, its fields required, optional, nullable or with a default."""
    annotations: dict[str, Any] = {}
    namespace: dict[str, Any] = {"__module__": __name__, "__annotations__": annotations}
    for index in range(draw(st.integers(1, 6))):
        name, hint = f"field_{index}", draw(hints(depth - 1))
        match draw(st.sampled_from(["required", "optional", "optional", "nullable", "default"])):
            case "required":
                annotations[name] = hint
            case "nullable" if "Literal" not in str(hint):
                annotations[name] = marked(hint, Nullable()) | None
                namespace[name] = None
            case "default" if hint in {bool, Quantity, IntOrString, str, int}:
                annotations[name], namespace[name] = hint, {bool: True, str: "é", int: 3}.get(hint, Quantity("1"))
                if hint == IntOrString:
                    namespace[name] = 80
            case _:
                annotations[name], namespace[name] = hint | None, None
    return type(Struct)("Random", (Struct,), namespace)


@st.composite
def keyed_lists(draw: st.DrawFn) -> Any:
    """A list map whose items have a key, and maybe a second one with a default."""
    annotations: dict[str, Any] = {"name": str, "value": draw(scalars()) | None}
    namespace: dict[str, Any] = {"__module__": __name__, "__annotations__": annotations, "value": None}
    keys = ["name"]
    if draw(st.booleans()):
        annotations["port"], namespace["port"] = int, 80
        keys.append("port")
    return marked(list[type(Struct)("Item", (Struct,), namespace)], ListMap(*keys))


@st.composite
def hints(draw: st.DrawFn, depth: int) -> Any:  # noqa: PLR0911 - one return for each shape
    """Any type that a field may have."""
    if depth <= 0:
        return draw(scalars())
    shape = draw(st.sampled_from(["scalar", "scalar", "struct", "list", "map", "set", "keyed", "any"]))
    low = draw(st.integers(0, 2))
    limits = draw(st.booleans())
    match shape:
        case "struct":
            extra = draw(st.sampled_from([(), (PreserveUnknownFields(),), (MapAtomic(),), (MinProperties(1),)]))
            return marked(draw(structs(depth)), *extra)
        case "list":
            return marked(list[draw(hints(depth - 1))], *((MinItems(low), MaxItems(low + 1)) if limits else ()))
        case "map":
            item = draw(hints(depth - 1))
            return marked(dict[str, item], *((MinProperties(low), MaxProperties(low + 1)) if limits else ()))
        case "set":
            return marked(list[draw(scalars())], ListSet(), *((MaxItems(3),) if limits else ()))
        case "keyed":
            return draw(keyed_lists())
        case "any":
            return draw(st.sampled_from([Any, dict[str, Any]]))
        case _:
            return draw(scalars())


# --- random values ----------------------------------------------------------------------------------------------------

WORDS = (
    "",
    "a",
    "b",
    "ab",
    "xx",
    "12",
    "é",
    "éé",
    "a.b",
    "a b",
    "x\n",
    "abcd_",
    "1Gi",
    "500m",
    "1e3",
    "-1.5",
    "٣",
    "A b",
)
# Letters that have long been in Unicode: what is printable differs between its versions.
LETTERS = st.text(st.characters(max_codepoint=0x24F), max_size=6)
JUNK = st.sampled_from(
    [None, True, 0, 1, -1, 2**31, 2**63, 2**64, 1.0, 1.5, -0.25, 1e300, "x", "", [], [1], ["a"], {}, {"a": 1}]
)


def strings(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    choices: list[st.SearchStrategy[Any]] = [st.sampled_from(WORDS), LETTERS]
    if "enum" in schema:
        choices = [st.sampled_from(schema["enum"])]
    if schema.get("format") in FORMATS:
        choices.append(st.sampled_from(FORMATS[schema["format"]]))
        choices.append(st.sampled_from(FORMATS[schema["format"]]))
    return st.one_of(choices)


def quantities(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    around = [float(schema[name]) for name in ("minimum", "maximum") if name in schema] or [0.0]
    steps = st.sampled_from([0, 1, -1, 0.01, 0.07, 0.1, 0.29, 0.25, 0.5, 3, 1e-12])
    near = st.builds(lambda base, step: base + step, st.sampled_from(around), steps)
    whole = st.one_of(st.integers(-8, 8), near.map(int), st.sampled_from([2**31 - 1, 2**31, -(2**31) - 1, 2**63 - 1]))
    if "enum" in schema:
        whole = st.sampled_from([*schema["enum"], 3])
    return st.one_of(whole, whole.map(float), near) if schema.get("type") == "number" else st.one_of(whole, whole, near)


def objects(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    if isinstance(schema.get("additionalProperties"), dict):
        return st.dictionaries(
            st.sampled_from(["a", "b", "k.v", "é"]), values(schema["additionalProperties"]), max_size=3
        )
    known = {name: values(inner) for name, inner in schema.get("properties", {}).items()}
    required = {name: known[name] for name in schema.get("required", ())}
    usual = st.fixed_dictionaries(
        required, optional={name: inner for name, inner in known.items() if name not in required}
    )
    careless = st.fixed_dictionaries({}, optional=known | {"unknown": JUNK})
    return st.one_of(usual, usual, usual, careless)


def values(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values that mostly fit a schema, and often nearly."""
    match schema.get("type"):
        case "string":
            fitting = strings(schema)
        case "integer" | "number":
            fitting = quantities(schema)
        case "boolean":
            fitting = st.booleans()
        case "array":
            fitting = st.lists(values(schema["items"]), max_size=3)
        case "object":
            fitting = objects(schema)
        case _ if schema.get("x-kubernetes-int-or-string"):
            fitting = st.one_of(st.sampled_from(WORDS), st.integers(-3, 100))
        case _:
            fitting = JUNK
    return st.integers(0, 24).flatmap(lambda chance: JUNK if chance == 0 else st.none() if chance == 1 else fitting)


def repaired(schema: dict[str, Any], spec: Any) -> Any:
    """The value without the optional fields that are wrong: most random values have one somewhere."""
    if isinstance(spec, dict):
        wrong = {
            problem.path.partition(".")[0].partition("[")[0]
            for problem in validate_tree(schema, admitted(schema, spec))
        }
        return {name: value for name, value in spec.items() if name not in wrong or name in schema.get("required", ())}
    return spec


# --- the property -----------------------------------------------------------------------------------------------------


class Kind:
    """A random kind; printed by its name, for its schema is long."""

    def __init__(self, cls: type[Resource[Any, Any]]) -> None:
        self.cls, self.schema, self.crd = cls, schema_for(cls), crd_for(cls)


def random_spec(number: int) -> type[Struct]:
    """A random struct class, the same for the same number; the richest of a few."""
    found: list[type[Struct]] = []

    @seed(number)
    @settings(
        max_examples=12,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(structs(3))
    def collect(cls: type[Struct]) -> None:
        found.append(cls)

    collect()
    return max(found, key=lambda cls: len(str(schema_for(cls))))


@pytest_asyncio.fixture(scope="session")
async def kinds(server) -> list[Kind]:
    """Random kinds, installed on the server."""
    installed = []
    for index in range(KINDS):
        spec = type(Struct)("RandomSpec", (Spec, random_spec(SEED * 1000 + index)), {"__module__": __name__})
        options = {"group": f"seed{SEED}.agreement.example.com", "version": "v1", "scope": "Cluster"}
        cls = types.new_class(
            f"Random{index}", (Resource[spec, None],), options, lambda ns: ns.update(__module__=__name__)
        )
        installed.append(Kind(cls))
        await server.install(installed[-1].crd)
    return installed


@pytest.mark.parametrize("index", range(KINDS))
@seed(SEED)
@settings(max_examples=max(VALUES // KINDS, 1), deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
async def test_validation_and_the_server_agree(server, kinds: list[Kind], index: int, data: st.DataObject) -> None:
    """A value has problems if and only if the server refuses it, and then both name the same fields."""
    kind = kinds[index]
    spec = data.draw(values(kind.schema["properties"]["spec"]))
    if data.draw(st.booleans()):
        spec = repaired(kind.schema["properties"]["spec"], spec)
    tree = {"apiVersion": kind.cls.gvk().api_version, "kind": kind.crd["spec"]["names"]["kind"]}
    tree |= {"metadata": {"name": "x"}, "spec": spec}
    found = validate_tree(kind.schema, admitted(kind.schema, tree, root=True))
    with contextlib.suppress(DecodeError):  # what the types can read, they judge the same as the tree
        assert problems(decode(kind.cls, msgspec.json.encode(tree))) == found
    causes = await server.verdict(kind.crd, tree)
    assert bool(found) == bool(causes), (found, causes)
    ours = {(problem.path, problem.reason, problem.message) for problem in found}
    theirs = {(cause["field"], cause["reason"], cause["message"]) for cause in causes if cause["field"] != "<nil>"}
    assert theirs <= ours
