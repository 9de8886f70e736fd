"""Generated models: names, types, required-ness, documentation, and how the text is laid out."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Literal

import pytest
import yaml
from hypothesis import given, settings, strategies as st

from samples.type_checkers import pyright
from steersman.codegen import (
    ModelCatalog,
    Target,
    UnreadableSchema,
    read_crds,
    read_openapi,
    served_group_versions,
    write_models,
)
from steersman.codegen.layout import docstring
from steersman.codegen.names import field_names, module_name, singular, snake_case
from steersman.markers import ListMap, ListSet, Maximum, MaxItems, MaxLength, Minimum, MinItems, MinLength, Pattern
from steersman.objects import Condition, IntOrString, Object, ObjectMeta, Quantity, decode, encode
from steersman.objects.hints import declared_hints, wire_names
from steersman.schemas import problems
from steersman.schemas.docstrings import field_descriptions

ROOT = Path(__file__).parents[2]
GADGET = yaml.safe_load((ROOT / "tests" / "samples" / "gadget.yaml").read_text(encoding="utf-8"))


def texts(*crds: dict[str, Any], own: bool = False) -> dict[str, str]:
    return write_models(read_crds(crds or [GADGET], as_owner=own), Target(as_owner=own))


def crd(schema: dict[str, Any], *, kind: str = "Thing", group: str = "example.com") -> dict[str, Any]:
    """A CRD whose whole schema is given."""
    plural = f"{kind.lower()}s"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Cluster",
            "names": {"kind": kind, "plural": plural},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


def spec(properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    inner = {"type": "object", "properties": properties} | more
    return crd({"type": "object", "properties": {"spec": inner}})


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Import generated modules as a user would: from files."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def load(modules: dict[str, str], name: str) -> ModuleType:
        for module, text in modules.items():
            (tmp_path / f"{module}.py").write_text(text, encoding="utf-8")
            monkeypatch.delitem(sys.modules, module, raising=False)
        return __import__(name)

    return load


@pytest.fixture
def gadget(load: Any) -> Any:
    return load(texts(), "models_test_steersman_dev_v1")


def test_one_module_for_each_version() -> None:
    assert list(texts()) == ["models_test_steersman_dev_v1", "models_test_steersman_dev_v1beta1"]


def test_the_kind(gadget: Any) -> None:
    options = gadget.Gadget.__resource__
    assert issubclass(gadget.Gadget, Object)
    assert (options.group, options.version, options.plural) == ("models.test.steersman.dev", "v1", "gadgets")
    assert (options.short_names, options.categories, options.scope) == (("gd",), ("all",), "Namespaced")


def test_types(gadget: Any) -> None:
    """Each kind of schema node has its Python type."""
    hints = declared_hints(gadget.GadgetSpec)
    pattern = Pattern(r"^[a-z0-9]+(\.[a-z0-9]+)*$")
    assert hints["image"] == Annotated[str, MinLength(1), MaxLength(100), pattern]
    assert hints["replicas"] == Annotated[int, Minimum(0), Maximum(50)] | None
    assert hints["mode"] == Literal["static", "dynamic"] | None
    assert hints["level"] == Literal[1, 2, 3] | None
    assert hints["list_"] == Annotated[list[Annotated[str, MaxLength(20)]], ListSet(), MinItems(1), MaxItems(10)]
    assert hints["dict_"] == dict[str, list[Annotated[int, Minimum(1)]]] | None
    assert hints["until"] == datetime | None
    assert hints["cpu"] == Quantity | None
    assert hints["surge"] == IntOrString | None
    assert hints["ports"] == Annotated[list[gadget.GadgetSpecPort], ListMap("port", "protocol")]
    assert hints["options"] == dict[str, gadget.GadgetSpecOption] | None
    assert hints["self_signed"] == gadget.GadgetSpecSelfSigned | None
    assert declared_hints(gadget.GadgetStatus)["conditions"] == Annotated[list[Condition], ListMap("type")] | None


def test_required_is_kept_and_defaults_are_the_servers(gadget: Any) -> None:
    """A client of a foreign CRD sends what it sets, and nothing that it would then own."""
    assert gadget.GadgetSpec.__required__ == {"image", "ports", "list_"}
    assert gadget.Gadget.__required__ == {"metadata", "spec"}
    assert gadget.GadgetSpec.__declared_defaults__ == {}
    port = gadget.GadgetSpecPort(port=80)
    intent = gadget.Gadget(metadata=ObjectMeta(name="g"), spec=gadget.GadgetSpec(image="i", ports=[port], list_=["a"]))
    assert encode(intent) == (
        b'{"apiVersion":"models.test.steersman.dev/v1","kind":"Gadget","metadata":{"name":"g"},'
        b'"spec":{"image":"i","list":["a"],"ports":[{"port":80}]}}'
    )
    descriptions = field_descriptions(gadget.GadgetSpec)
    assert descriptions["replicas"] == "Default: ``1``, filled in by the server."


def test_names_that_python_would_rather_not_have(gadget: Any) -> None:
    wires = wire_names(gadget.GadgetSpec)
    assert {name: wires[name] for name in ("list_", "dict_", "str_", "from_", "field_", "pod_ip", "pod_ips")} == {
        "list_": "list",
        "dict_": "dict",
        "str_": "str",
        "from_": "from",
        "field_": "field",
        "pod_ip": "podIP",
        "pod_ips": "podIPs",
    }
    assert wire_names(gadget.GadgetSpecOption)["weird_name"] == "weird-name"
    assert wire_names(gadget.Gadget)["key_"] == "key"


def test_constraints_are_checked_before_writing(load: Any) -> None:
    name, tags = (
        {"type": "string", "pattern": "^[a-z]+$"},
        {"type": "array", "items": {"type": "string"}, "minItems": 1},
    )
    module: Any = load(texts(spec({"name": name, "tags": tags})), "example_com_v1")
    found = problems(module.Thing(metadata=ObjectMeta(name="g"), spec=module.ThingSpec(name="UPPER", tags=[])))
    assert {problem.path for problem in found} == {"spec.name", "spec.tags"}


def test_nothing_is_lost_that_the_models_do_not_know(gadget: Any) -> None:
    raw = (
        b'{"apiVersion":"models.test.steersman.dev/v1","kind":"Gadget","metadata":{"name":"g"},"spec":{"image":"i",'
        b'"mode":"newer","ports":[{"port":80,"newer":1}],"newer":{"a":null}}}'
    )
    typed = decode(gadget.Gadget, raw)
    assert encode(typed) == raw
    typed.spec.ports[0].port = 81
    assert encode(typed) == raw.replace(b"80", b"81")


def test_a_password_is_not_shown(gadget: Any) -> None:
    assert "hush" not in repr(gadget.GadgetSpec(image="i", ports=[], list_=[], password="hush"))


def test_owners_keep_their_defaults_rules_and_columns(load: Any) -> None:
    own: Any = load(texts(own=True), "models_test_steersman_dev_v1")
    assert own.GadgetSpec.__declared_defaults__["replicas"] == 1
    assert own.GadgetSpecPort.__declared_defaults__ == {"protocol": "TCP"}
    assert own.GadgetSpecTemplate().args == ["x", "y"]
    assert own.GadgetSpec(image="i", ports=[], list_=["a"]).template.labels == {"a": "b"}
    assert [column.name for column in own.Gadget.__resource__.columns] == ["Replicas", "Age"]
    assert own.Gadget.__resource__.selectable_fields == (".spec.mode",)


def test_only_kubernetes_own_types_name_the_servers_version() -> None:
    """A CRD says the same on every server, so its models do not change with the server's version."""
    source = Target(source="Kubernetes v1.2.3")
    for text in write_models(read_crds([GADGET]), source).values():
        assert "v1.2.3" not in text
    gvk = [{"group": "apps", "version": "v1", "kind": "A"}]
    node = {"type": "object", "x-kubernetes-group-version-kind": gvk, "properties": {"metadata": {}}}
    (text,) = write_models(read_openapi([openapi({"io.k8s.api.apps.v1.A": node})]), source).values()
    assert "from Kubernetes v1.2.3: do not edit" in text


def test_the_order_of_reading_does_not_matter() -> None:
    """The same CRD, its entries in another order, gives the same text."""
    backwards = json.loads(json.dumps(GADGET), object_pairs_hook=lambda pairs: dict(reversed(pairs)))
    other = crd({"type": "object"})
    assert texts(GADGET, other) == texts(other, backwards)


def test_a_kind_may_have_the_name_of_what_the_module_imports(load: Any) -> None:
    """Crossplane has a kind called Object, and any CRD may have one called Rule or Any."""
    nested = {"type": "object", "properties": {"limit": {"type": "integer", "minimum": 1}, "x": {}}}
    crds = [
        crd({"type": "object", "properties": {"spec": nested}}, kind=kind)
        for kind in ("Object", "Struct", "Minimum", "Any", "Annotated")
    ]
    module: Any = load(texts(*crds), "example_com_v1")
    for name, kind in (("Object", "Object"), ("Minimum", "Minimum"), ("Any_", "Any"), ("Annotated_", "Annotated")):
        cls: Any = getattr(module, name)
        assert cls.__resource__.kind == kind
        assert Minimum(1) in declared_hints(declared_hints(cls)["spec"].__args__[0])["limit"].__args__[0].__metadata__


def test_two_fields_that_meet_in_one_name() -> None:
    assert field_names(["$ref", "ref", "fooBar", "foo_bar", "foo-bar"]) == {
        "ref": "ref",
        "$ref": "ref_2",
        "foo_bar": "foo_bar",
        "foo-bar": "foo_bar_2",
        "fooBar": "foo_bar_3",
    }


@pytest.mark.parametrize(
    ("wire", "name"),
    [
        ("podIP", "pod_ip"),
        ("podIPs", "pod_ips"),
        ("serverAddressByClientCIDRs", "server_address_by_client_cidrs"),
        ("nonResourceURLs", "non_resource_urls"),
        ("x-kubernetes-list-map-keys", "x_kubernetes_list_map_keys"),
        ("$schema", "schema"),
        ("openAPIV3Schema", "open_api_v3_schema"),
        ("fieldsV1", "fields_v1"),
        ("ipv4Address", "ipv4_address"),
        ("HTTPRoute", "http_route"),
    ],
)
def test_snake_case(wire: str, name: str) -> None:
    assert snake_case(wire) == name


@given(st.lists(st.text(max_size=12), unique=True, max_size=6), st.booleans())
def test_any_name_becomes_a_name(wires: list[str], of_kind: bool) -> None:  # noqa: FBT001 - drawn
    """Whatever a schema calls its fields, each has a legal Python name of its own."""
    names = field_names(wires, of_kind=of_kind)
    assert len(set(names.values())) == len(wires)
    for name in names.values():
        compile(f"class A:\n    {name}: int\n", "<test>", "exec")
        assert not name.startswith("_")


def test_no_field_hides_an_attribute_of_its_class(load: Any) -> None:
    """Controllers read an object's uid and generation, whatever fields its kind has."""
    given = {name for name in dir(Object) if not name.startswith("_")} - {"api_version", "kind", "metadata"}
    tree = {"type": "object", "properties": {name: {"type": "string"} for name in given}}
    module: Any = load(texts(crd(tree)), "example_com_v1")
    made = module.Thing(metadata=ObjectMeta(name="a", uid="u", generation=3), **{f"{name}_": name for name in given})
    assert (made.uid, made.generation, made.deleting, made.key.name) == ("u", 3, False, "a")
    assert (module.Thing.gvk().kind, module.Thing.gvr().resource) == ("Thing", "things")
    assert module.Thing.only(uid_="x").uid_ == "x"
    assert {name: json.loads(encode(made))[name] for name in given} == {name: name for name in given}


def test_module_names() -> None:
    assert module_name("", "v1") == "core_v1"
    assert module_name("rbac.authorization.k8s.io", "v1") == "rbac_v1"
    assert module_name("apps", "v1") == "apps_v1"
    assert module_name("gateway.networking.k8s.io", "v1beta1") == "gateway_networking_k8s_io_v1beta1"
    assert module_name("cert-manager.io", "v1") == "cert_manager_io_v1"


def test_two_groups_that_meet_in_one_module_name() -> None:
    first = crd({"type": "object"}, group="a-b.example.com")
    second = crd({"type": "object"}, group="a.b.example.com")
    assert list(texts(first, second)) == ["a_b_example_com_v1", "a_b_example_com_v1_2"]


@pytest.mark.parametrize(
    ("many", "one"),
    [
        ("Ports", "Port"),
        ("Policies", "Policy"),
        ("Addresses", "Address"),
        ("Matches", "Match"),
        ("ContainerStatuses", "ContainerStatus"),
        ("HostAliases", "HostAlias"),
        ("Caches", "Cache"),
        ("BuildCaches", "BuildCache"),
        ("Databases", "Database"),
        ("Releases", "Release"),
        ("Queries", "Query"),
        ("Series", "SeriesItem"),
        ("Data", "DataItem"),
        ("Status", "StatusItem"),
    ],
)
def test_one_of_many(many: str, one: str) -> None:
    """A list named in the plural has items whose class is named in the singular."""
    assert singular(many) == one


def test_a_pattern_of_go_alone_is_reported_and_left_to_the_server(load: Any) -> None:
    module: Any = load(texts(spec({"name": {"type": "string", "pattern": r"^\p{Lu}+$"}})), "example_com_v1")
    assert declared_hints(module.ThingSpec)["name"] == str | None
    assert "only by the server" in field_descriptions(module.ThingSpec)["name"]


@pytest.mark.parametrize(
    ("tree", "said"),
    [
        (
            {"kind": "Deployment", "apiVersion": "apps/v1"},
            "expected a CustomResourceDefinition, got apps/v1 Deployment",
        ),
        (
            crd({}) | {"apiVersion": "apiextensions.k8s.io/v1beta1"},
            "things.example.com: its apiVersion is .*v1beta1; convert",
        ),
        ({"kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1"}, "it is incomplete"),
        (spec({"a": {"type": "array", "x-kubernetes-list-type": "map"}}), "things.example.com is malformed"),
        (spec({"a": ["no"]}), "things.example.com is malformed"),
        (crd({"properties": []}), "properties must be an object, not list"),
    ],
)
def test_what_is_no_crd(tree: dict[str, Any], said: str) -> None:
    with pytest.raises(UnreadableSchema, match=said):
        read_crds([tree])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(
        ["type", "properties", "items", "enum", "format", "required", "default", "additionalProperties", "pattern",
         "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "allOf", "$ref", "minimum", "nullable", "a"]
    ), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(JSON, st.booleans())
def test_garbage_is_one_error(garbage: Any, own: bool) -> None:  # noqa: FBT001 - drawn
    """A document that is not what it claims to be raises that error; nothing else ever escapes."""
    try:
        catalog = read_crds([spec({"a": garbage})], as_owner=own)
        for text in write_models(catalog, Target(as_owner=own)).values():
            compile(text, "<generated>", "exec")
    except UnreadableSchema:
        pass


def openapi(schemas: dict[str, Any]) -> dict[str, Any]:
    return {"openapi": "3.0.0", "components": {"schemas": schemas}}


def test_references_that_lead_nowhere() -> None:
    gvk = [{"group": "example.com", "version": "v1", "kind": "A"}]
    node = {"x-kubernetes-group-version-kind": gvk, "properties": {"x": {"$ref": "#/components/schemas/com.b.B"}}}
    with pytest.raises(UnreadableSchema, match=r"refer to com\.b\.B but do not define it"):
        read_openapi([openapi({"com.example.v1.A": node})])
    with pytest.raises(UnreadableSchema, match="not an OpenAPI v3 document"):
        read_openapi([{"swagger": "2.0"}])
    with pytest.raises(UnreadableSchema, match="lists no group-version"):
        served_group_versions({"paths": {}})


def test_shared_definitions_of_an_aggregated_server(load: Any) -> None:
    """A package of definitions without a kind belongs to no group-version: each module that needs it has it."""
    gvk = [{"group": "example.com", "version": "v1", "kind": "A"}]
    part = {"type": "object", "properties": {"size": {"type": "integer"}}}
    kind = {
        "type": "object",
        "x-kubernetes-group-version-kind": gvk,
        "properties": {
            "metadata": {},
            "part": {"default": {}, "allOf": [{"$ref": "#/components/schemas/com.lib.Part"}]},
        },
    }
    catalog = read_openapi([openapi({"com.example.v1.A": kind, "com.lib.Part": part})])
    module: Any = load(write_models(catalog, Target()), "example_com_v1")
    assert declared_hints(module.A)["part"] == module.Part | None


def test_types_that_exist_are_imported() -> None:
    """Nothing of steersman.objects, or of a library that was generated before, is generated again."""
    gvk = [{"group": "example.com", "version": "v1", "kind": "A"}]
    kind = {
        "type": "object",
        "x-kubernetes-group-version-kind": gvk,
        "properties": {
            "metadata": {},
            "owner": {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference"},
            "pod": {"$ref": "#/components/schemas/io.k8s.api.core.v1.PodSpec"},
        },
    }
    schemas = {
        "com.example.v1.A": kind,
        "io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference": {"type": "object"},
        "io.k8s.api.core.v1.PodSpec": {"type": "object"},
    }
    library = {"io.k8s.api.core.v1.PodSpec": ("steersman.kinds.core_v1", "PodSpec")}
    (text,) = write_models(read_openapi([openapi(schemas)]), Target(library=library)).values()
    assert "from steersman.kinds.core_v1 import PodSpec\n" in text
    assert "from steersman.objects import Object, OwnerReference\n" in text


def ruff(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ruff", "format", "--isolated", "--no-cache", "--line-length", "120", "--diff"]
    return subprocess.run([*command, str(folder)], capture_output=True, text=True, check=False)


WORDS = st.text("abcdefgh", min_size=1, max_size=30)
LONG = st.text('abcdefgh \\."', max_size=140)
NODE = st.recursive(
    st.builds(lambda: {"type": "string"})
    | st.builds(lambda names: {"type": "string", "enum": sorted(names)}, st.sets(WORDS, min_size=1, max_size=6))
    | st.builds(lambda text: {"type": "string", "description": text, "maxLength": 5}, LONG)
    | st.builds(lambda text: {"type": "string", "pattern": "x" + text.replace("\\", "a"), "minLength": 3}, LONG)
    | st.builds(lambda low: {"type": "integer", "default": low, "minimum": 1, "maximum": 10**9}, st.integers(1, 10**9)),
    lambda inner: (
        st.builds(lambda item: {"type": "array", "items": item, "maxItems": 3, "minItems": 1}, inner)
        | st.builds(lambda item: {"type": "object", "additionalProperties": item}, inner)
        | st.builds(lambda fields: {"type": "object", "properties": fields}, st.dictionaries(WORDS, inner, max_size=4))
    ),
    max_leaves=8,
)


@settings(max_examples=8, deadline=None)
@given(st.lists(st.dictionaries(WORDS | st.just("podIPs"), NODE, max_size=6), min_size=10, max_size=10), st.booleans())
def test_the_text_is_as_ruff_leaves_it(tmp_path_factory: Any, schemas: list[Any], own: bool) -> None:  # noqa: FBT001
    folder = tmp_path_factory.mktemp("generated")
    for number, properties in enumerate(schemas):
        for text in texts(spec(properties), own=own).values():
            (folder / f"module_{number}.py").write_text(text, encoding="utf-8")
    answer = ruff(folder)
    assert answer.returncode == 0, answer.stdout + answer.stderr


@pytest.mark.parametrize("own", [False, True], ids=["client", "owner"])
def test_the_gadget_is_as_ruff_leaves_it(tmp_path: Path, own: bool) -> None:  # noqa: FBT001 - a parameter
    for name, text in texts(own=own).items():
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    answer = ruff(tmp_path)
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_docstrings() -> None:
    assert docstring("") == []
    assert docstring('Say "hi"') == ['    """Say "hi" """']
    assert docstring(r"A \d") == [r'    r"""A \d"""']
    assert docstring("a\n\n\n\nb") == ['    """a', "", "    b", '    """']
    assert max(map(len, docstring("word " * 200))) <= 120


USE = """
from models_test_steersman_dev_v1 import Gadget, GadgetSpec, GadgetSpecPort
from steersman.objects import ObjectMeta, Quantity

gadget = Gadget(
    metadata=ObjectMeta(name="g"),
    spec=GadgetSpec(image="i", ports=[GadgetSpecPort(port=80, protocol="UDP")], list_=["a"], cpu=Quantity("1")),
)
reveal_type(gadget.spec.replicas)
reveal_type(gadget.spec.ports[0].protocol)
GadgetSpec(image="i", ports=[], list_=[], mode="wrong")
GadgetSpec(image="i", ports=[])
"""


def test_type_checkers_understand_the_models(tmp_path: Path) -> None:
    """Strict pyright accepts the generated text, sees the types, and finds mistakes in its use."""
    for name, text in texts().items():
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    (tmp_path / "use.py").write_text(textwrap.dedent(USE), encoding="utf-8")
    findings = pyright(tmp_path)
    seen = sorted((finding["range"]["start"]["line"], finding["message"].splitlines()[0]) for finding in findings)
    wrong = "\"Literal['static', 'dynamic'] | None\" in function \"__init__\""
    assert [message for _, message in seen] == [
        'Type of "gadget.spec.replicas" is "int | None"',
        "Type of \"gadget.spec.ports[0].protocol\" is \"Literal['TCP', 'UDP'] | None\"",
        f'Argument of type "Literal[\'wrong\']" cannot be assigned to parameter "mode" of type {wrong}',
        'Argument missing for parameter "list_"',
    ]


def test_an_empty_catalog_writes_nothing() -> None:
    assert write_models(ModelCatalog(), Target()) == {}
