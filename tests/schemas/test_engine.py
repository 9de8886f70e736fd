"""The server accepts the CRDs of all markers and enforces what the types say."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
import pytest
import pytest_asyncio

from samples.schema_server import collection
from steersman.markers import (
    AtLeastOneOf,
    AtMostOneOf,
    Description,
    EmbeddedResource,
    ExactlyOneOf,
    Example,
    ExternalDocs,
    Format,
    Immutable,
    Int32,
    ListAtomic,
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
    Rule,
    Title,
)
from steersman.objects import (
    Condition,
    IntOrString,
    Object,
    ObjectMeta,
    PrinterColumn,
    Quantity,
    Resource,
    ScaleSubresource,
    Spec,
    Status,
    Struct,
    decode,
    encode,
    to_json,
)
from steersman.schemas import crd_for, crd_yaml, problems
from steersman.testing import Engine

GROUP = "markers.example.com"


class Port(Struct):
    name: str
    port: Annotated[Int32, Minimum(1), Maximum(65535)]
    protocol: Literal["TCP", "UDP"] = "TCP"
    zone: Annotated[str, Immutable(), MaxLength(20)] | None = None


class Point(Struct):
    x: int
    y: int


class Source(Struct, rules=(ExactlyOneOf("git", "image"),)):
    git: str | None = None
    image: str | None = None


class Notice(Struct, rules=(AtMostOneOf("mail", "page"), AtLeastOneOf("mail", "page", "for"))):
    mail: str | None = None
    page: str | None = None
    for_: str | None = None


class Job(Object, group="jobs.example.com", version="v1"):
    steps: list[str]


class AllSpec(
    Spec, rules=(Rule(rule="self.low <= self.high", message="low exceeds high", reason="FieldValueForbidden"),)
):
    """Everything at once."""

    name: Annotated[str, MinLength(2), MaxLength(5), Title("N"), Description("D"), Example("ab")]
    low: Annotated[int, Minimum(0), MultipleOf(5)] = 0
    high: Annotated[int, Maximum(100, exclusive=True), ExternalDocs(url="https://example.com")] = 50
    ratio: Annotated[float, Minimum(0, exclusive=True), Maximum(1)] | None = None
    slug: Annotated[str, Pattern("^[a-z]+$"), Immutable()] | None = None
    region: Annotated[str, Immutable(from_creation=True), MaxLength(20)] | None = None
    address: Annotated[str, Format("ipv4")] | None = None
    mode: Literal["a", "b"] = "a"
    level: Literal[1, 2] | None = None
    tags: Annotated[list[Annotated[str, MaxLength(4)]], ListSet(), MinItems(1), MaxItems(3)] | None = None
    ports: Annotated[list[Port], ListMap("port", "protocol"), MaxItems(10)] | None = None
    points: Annotated[list[Annotated[Point, MapAtomic()]], ListSet(), MaxItems(9)] | None = None
    order: Annotated[list[str], ListAtomic()] | None = None
    labels: (
        Annotated[dict[str, Annotated[str, MaxLength(3)]], MinProperties(1), MaxProperties(2), MapAtomic()] | None
    ) = None
    cpu: Quantity | None = None
    target: IntOrString = "http"
    since: datetime | None = None
    blob: bytes | None = None
    nothing: Annotated[int, Nullable()] | None = None
    loose: Annotated[Point, PreserveUnknownFields()] | None = None
    free: dict[str, Any] | None = None
    anything: Any = None
    manifest: Annotated[dict[str, Any], EmbeddedResource()] | None = None
    job: Job | None = None
    source: Source | None = None
    notice: Notice | None = None
    budget: (
        Annotated[
            int,
            Rule(rule="self >= oldSelf", message="it only grows"),
            Rule(rule="self != 13", message_expression="self > 0 ? 'unlucky' : ''"),
        ]
        | None
    ) = None
    first: (
        Annotated[int, Rule(rule="oldSelf.hasValue() || self == 1", optional_old_self=True, message="begins at 1")]
        | None
    ) = None
    replicas: Annotated[Int32, Minimum(0)] = 1


class AllStatus(Status):
    replicas: int = 0
    selector: str = ""


class All(
    Resource[AllSpec, AllStatus],
    group=GROUP,
    version="v1",
    plural="alls",
    short_names=("al",),
    categories=("everything",),
    scale=ScaleSubresource(label_selector_path=".status.selector"),
    columns=(
        PrinterColumn(name="Mode", type="string", json_path=".spec.mode", description="How", priority=1),
        PrinterColumn(name="Ready", type="string", json_path='.status.conditions[?(@.type=="Ready")].status'),
    ),
    selectable_fields=(".spec.mode", ".spec.low"),
):
    """All markers."""


class OldSpec(Spec):
    name: str


class Old(
    Resource[OldSpec, None],
    group=GROUP,
    version="v1beta1",
    kind="All",
    plural="alls",
    storage=False,
    deprecated="v1beta1 is going away; use v1",
):
    """An earlier version."""


CRD = crd_for(All, Old, labels={"app": "x"}, annotations={"note": "y"})


@pytest_asyncio.fixture(scope="module")
async def installed(server):
    """The kind with all markers, on the server, without objects."""
    await server.install(CRD)
    await server.request("DELETE", collection(CRD, "v1"))
    return server


def as_bytes(made: dict[str, Any]) -> bytes:
    return msgspec.json.encode(made)


def tree(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "All",
        "metadata": {"name": "x", "namespace": "default"},
        "spec": {"name": "abc"} | spec,
    }


ACCEPTED = [
    {},
    {"low": 5, "high": 99, "ratio": 1.0, "slug": "abc", "address": "10.0.0.1", "mode": "b", "level": 2},
    {"tags": ["a"], "ports": [{"name": "a", "port": 1}, {"name": "a", "port": 1, "protocol": "UDP"}]},
    {"points": [{"x": 1, "y": 2}, {"x": 2, "y": 1}], "labels": {"a": "abc"}, "order": ["a", "a"]},
    {"cpu": "500m", "target": 80, "since": "2026-01-01T00:00:00Z", "blob": "YQ==", "nothing": None},
    {"cpu": 1, "loose": {"x": 1, "y": 1, "z": {}}, "free": {"a": [None]}, "anything": [1, "a"]},
    {"manifest": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {}}},
    {"job": {"apiVersion": "jobs.example.com/v1", "kind": "Job", "steps": ["a"]}},
    {"source": {"git": "g"}, "notice": {"for": "x"}, "budget": 5, "first": 1},
    {"name": "é" * 5},
    {"unknown": 1},
]

REFUSED = [
    ({"name": "a"}, "spec.name", "at least 2 chars"),
    ({"name": "é" * 6}, "spec.name", "may not be more than 5"),
    ({"name": 1}, "spec.name", "must be of type string"),
    ({"name": None}, "spec.name", "Required value"),
    ({"low": -5}, "spec.low", "greater than or equal to 0"),
    ({"low": 3}, "spec.low", "multiple of 5"),
    ({"high": 100}, "spec.high", "less than 100"),
    ({"ratio": 0.0}, "spec.ratio", "greater than 0"),
    ({"slug": "A"}, "spec.slug", "should match"),
    ({"address": "10.0.0"}, "spec.address", "must be of type ipv4"),
    ({"mode": "c"}, "spec.mode", "supported values"),
    ({"level": 3}, "spec.level", "supported values"),
    ({"tags": []}, "spec.tags", "at least 1 items"),
    ({"tags": ["a", "b", "c", "d"]}, "spec.tags", "at most 3 items"),
    ({"tags": ["a", "a"]}, "spec.tags[1]", "Duplicate value"),
    ({"tags": ["abcde"]}, "spec.tags[0]", "may not be more than 4"),
    ({"ports": [{"name": "a", "port": 1}, {"name": "b", "port": 1, "protocol": "TCP"}]}, "spec.ports[1]", "Duplicate"),
    ({"ports": [{"name": "a"}]}, "spec.ports[0].port", "Required value"),
    ({"ports": [{"name": "a", "port": 65536}]}, "spec.ports[0].port", "less than or equal to 65535"),
    ({"points": [{"x": 1, "y": 2}, {"y": 2, "x": 1}]}, "spec.points[1]", "Duplicate"),
    ({"labels": {}}, "spec.labels", "at least 1 properties"),
    ({"labels": {"a": "", "b": "", "c": ""}}, "spec.labels", "at most 2 items"),
    ({"labels": {"a": "long"}}, "spec.labels.a", "may not be more than 3"),
    ({"cpu": "lots"}, "spec.cpu", "should match"),
    ({"target": 1.5}, "spec.target", "must be of type integer,string"),
    ({"since": "yesterday"}, "spec.since", "must be of type date-time"),
    ({"blob": "?"}, "spec.blob", "must be of type byte"),
    ({"loose": {"x": 1}}, "spec.loose.y", "Required value"),
    ({"free": []}, "spec.free", "must be of type object"),
    ({"manifest": {"kind": "Pod"}}, "spec.manifest.apiVersion", "Required value"),
    ({"job": {"apiVersion": "jobs.example.com/v1", "kind": "Job"}}, "spec.job.steps", "Required value"),
    ({"job": {"steps": []}}, "spec.job.kind", "Required value"),
]  # fmt: skip


@pytest.mark.parametrize("spec", ACCEPTED)
async def test_what_the_types_allow_is_accepted(installed, spec):
    """By the server and by `problems()`."""
    assert await installed.verdict(CRD, tree(**spec)) == []
    assert problems(decode(All, as_bytes(tree(**spec)))) == []


@pytest.mark.parametrize(("spec", "field", "said"), REFUSED, ids=lambda value: str(value)[:40])
async def test_what_the_types_forbid_is_refused(installed, spec, field, said):
    """By the server and, where the types can read it at all, by `problems()` in the same words."""
    causes = await installed.verdict(CRD, tree(**spec))
    assert any(cause["field"] == field and said in cause["message"] for cause in causes), causes
    if field not in {"spec.name", "spec.target", "spec.since", "spec.blob", "spec.free"} or said == "Required value":
        found = problems(decode(All, as_bytes(tree(**spec))))
        assert any(problem.path == field and said in problem.message for problem in found), found


RULES = [
    ({"low": 60}, "spec", "low exceeds high"),
    ({"source": {}}, "spec.source", "exactly one of git, image must be set"),
    ({"source": {"git": "a", "image": "b"}}, "spec.source", "exactly one of git, image must be set"),
    ({"notice": {"mail": "a", "page": "b"}}, "spec.notice", "at most one of mail, page may be set"),
    ({"notice": {}}, "spec.notice", "at least one of mail, page, for must be set"),
    ({"budget": 13}, "spec.budget", "unlucky"),
    ({"first": 2}, "spec.first", "begins at 1"),
]


@pytest.mark.parametrize(("spec", "field", "said"), RULES, ids=lambda value: str(value)[:40])
async def test_rules_are_enforced(installed, spec, field, said):
    causes = await installed.verdict(CRD, tree(**spec))
    assert [(cause["field"], said in cause["message"]) for cause in causes] == [(field, True)], causes


CHANGES = [
    ({"slug": "abc"}, {"slug": "abd"}, "slug is immutable"),
    ({"slug": "abc"}, {"slug": None}, "slug is immutable: once set it cannot be removed"),
    ({}, {"slug": "abc"}, ""),
    ({"region": "eu"}, {"region": None}, "neither set nor removed"),
    ({}, {"region": "eu"}, "neither set nor removed"),
    ({"region": "eu"}, {"region": "us"}, "region is immutable"),
    ({"region": "eu"}, {"mode": "b"}, ""),
    ({"budget": 5}, {"budget": 4}, "it only grows"),
    ({"budget": 5}, {"budget": 6}, ""),
    ({"first": 1}, {"first": 2}, ""),
    (
        {"ports": [{"name": "a", "port": 1, "zone": "z"}, {"name": "b", "port": 2}]},
        {"ports": [{"name": "b", "port": 2}, {"name": "a", "port": 1, "zone": "y"}]},
        "zone is immutable",
    ),
]


@pytest.mark.parametrize(("before", "after", "said"), CHANGES, ids=lambda value: str(value)[:40])
async def test_changes_are_judged_against_the_old_value(installed, path_of, before, after, said):
    """Immutable fields: change, removal and late setting, also inside the items of a list map."""
    path = path_of(CRD, "v1")
    made = tree(**before)
    made["metadata"] = {"generateName": "change-"}
    code, created = await installed.request("POST", path, made)
    assert code == 201, created
    code, answer = await installed.request(
        "PATCH", f"{path}/{created['metadata']['name']}", {"spec": after}, dryRun="All"
    )
    assert code == (422 if said else 200), answer
    assert said in answer.get("message", "")


async def test_the_server_fills_in_the_same_defaults_that_the_types_read(installed, path_of):
    """`x: T = d` means the same on both sides."""
    bare = tree()
    code, stored = await installed.request("POST", path_of(CRD, "v1"), bare, dryRun="All")
    assert code == 201
    made = All(metadata=ObjectMeta(name="x"), spec=AllSpec(name="abc"))
    assert stored["spec"] == to_json(made)["spec"]
    assert decode(All, as_bytes(bare)).spec == made.spec


async def test_status_and_scale_are_subresources(installed, path_of):
    path = path_of(CRD, "v1")
    made = tree(replicas=3)
    made["metadata"]["name"] = "scaled"
    code, _ = await installed.request("POST", path, made)
    assert code == 201
    status = AllStatus(replicas=2, selector="app=x", conditions=[Condition(type="Ready", status="True", reason="Why")])
    code, answer = await installed.request("PATCH", f"{path}/scaled/status", b'{"status":' + encode(status) + b"}")
    assert code == 200, answer
    code, scale = await installed.request("GET", f"{path}/scaled/scale")
    assert (scale["spec"], scale["status"]) == ({"replicas": 3}, {"replicas": 2, "selector": "app=x"})
    code, answer = await installed.request(
        "PATCH", f"{path}/scaled/status", {"status": {"conditions": [{"type": "Ready"}]}}
    )
    assert code == 422
    assert "status.conditions[0].reason" in answer["message"]


async def test_fields_can_be_selected(installed, path_of):
    path = path_of(CRD, "v1")
    for index, mode in enumerate("aab"):
        made = tree(mode=mode, low=95, high=99)
        made["metadata"]["name"] = f"selected-{index}"
        assert (await installed.request("POST", path, made))[0] == 201
    code, answer = await installed.request("GET", path, fieldSelector="spec.mode=b,spec.low=95")
    assert code == 200
    assert [item["metadata"]["name"] for item in answer["items"]] == ["selected-2"]


async def test_columns_are_printed(installed, path_of):
    as_table = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    async with installed.session.get(path_of(CRD, "v1"), headers=as_table) as answer:
        columns = (await answer.json())["columnDefinitions"]
    assert [(column["name"], column["priority"]) for column in columns] == [("Name", 0), ("Mode", 1), ("Ready", 0)]
    assert columns[1]["description"] == "How"


async def test_an_old_version_warns(installed, path_of):
    async with installed.session.get(path_of(CRD, "v1beta1")) as answer:
        assert answer.status == 200
        assert "v1beta1 is going away; use v1" in answer.headers["Warning"]


async def test_names_are_discovered(installed):
    code, answer = await installed.request("GET", f"/apis/{GROUP}/v1")
    found = next(resource for resource in answer["resources"] if resource["name"] == "alls")
    assert code == 200
    assert (found["singularName"], found["shortNames"], found["categories"]) == ("all", ["al"], ["everything"])


class PlainSpec(Spec):
    size: int


class Plain(Resource[PlainSpec, None], group="plain.example.com", version="v1", scope="Cluster"):
    """Applied by kubectl."""


async def test_kubectl_applies_the_yaml(engine: Engine, server, tmp_path):
    file = tmp_path / "crd.yaml"
    file.write_text(crd_yaml(Plain), encoding="utf-8")
    await engine.kubectl("apply", "--server-side", "-f", str(file))
    server.installed.append("plains.plain.example.com")
    await engine.kubectl("wait", "--for=condition=Established", "crd/plains.plain.example.com", "--timeout=20s")
    code, crd = await server.request(
        "GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/plains.plain.example.com"
    )
    assert code == 200
    conditions = {condition["type"]: condition["status"] for condition in crd["status"]["conditions"]}
    assert conditions["Established"] == "True"
    assert "NonStructuralSchema" not in conditions
    stored = crd["spec"]["versions"][0]["schema"]
    assert stored == crd_for(Plain)["spec"]["versions"][0]["schema"]


async def test_a_kind_with_scale_refuses_negative_replicas_as_problems_do(installed, path_of):
    made = All(metadata=ObjectMeta(name="x", namespace="default"), spec=AllSpec(name="abc", replicas=-1))
    causes = await installed.verdict(CRD, to_json(made))
    theirs = {(cause["field"], cause["message"]) for cause in causes}
    assert {(problem.path, problem.message) for problem in problems(made)} == theirs
