"""What an editor sees: the fields of a resource with their types, and mistakes where they are made."""

from __future__ import annotations

from samples.type_checkers import pyright

PROGRAM = '''\
from datetime import datetime
from typing import Annotated, Literal

from typing_extensions import reveal_type

from steersman.markers import Int32, ListMap, Minimum
from steersman.objects import Condition, ObjectMeta, Quantity, Resource, Spec, Status, Struct, decode, field, replace
from steersman.schemas import crd_for, problems, schema_for


class Port(Struct):
    name: str
    number: Int32 = 80


class SiteSpec(Spec):
    image: str
    replicas: Annotated[int, Minimum(0)] = 1
    mode: Literal["a", "b"] = "a"
    ports: Annotated[list[Port], ListMap("name")] | None = None
    cpu: Quantity | None = None
    since: datetime | None = None
    pod_ip: str | None = field(default=None, name="podIP")


class SiteStatus(Status):
    ready_replicas: int = 0


class Site(Resource[SiteSpec, SiteStatus], group="web.example.com", version="v1"):
    """A web site."""


site = decode(Site, b"{}")
reveal_type(site.spec.replicas)  # int
reveal_type(site.spec.mode)  # Literal['a', 'b']
reveal_type(site.spec.ports)  # list[Port] | None
reveal_type(site.status)  # SiteStatus | None
reveal_type(site.metadata.labels)  # dict[str, str] | None
reveal_type(replace(site.spec, image="x"))  # SiteSpec
reveal_type(crd_for(Site))  # dict[str, Any]
assert site.status is not None
reveal_type(site.status.conditions)  # list[Condition] | None
site.spec.replicas = 3
made = Site(metadata=ObjectMeta(name="a"), spec=SiteSpec(image="i", pod_ip="1.2.3.4"))
problems(made.spec)
schema_for(Port)
Condition(type="Ready", status="True", reason="Why")

site.spec.replicas = "three"  # error: reportAttributeAccessIssue
site.spec.replica  # error: reportAttributeAccessIssue
SiteSpec()  # error: reportCallIssue
SiteSpec("i")  # error: reportCallIssue
SiteSpec(image=1)  # error: reportArgumentType
SiteSpec(image="i", mode="c")  # error: reportArgumentType
Site(metadata=ObjectMeta(), spec=SiteStatus())  # error: reportArgumentType
Condition(type="Ready", status="Maybe", reason="Why")  # error: reportArgumentType


class Wrong(Resource[SiteSpec, None], group="a.example.com", version="v1", shortnames=("x",)):  # error: reportGeneralTypeIssues
    """An option that does not exist."""
'''


def test_pyright_sees_types_and_mistakes(tmp_path):
    """Strict, and without a plugin: completion and errors come from the classes alone."""
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    found = pyright(tmp_path, reportUnusedExpression="none")
    lines = PROGRAM.splitlines()
    revealed = {
        finding["range"]["start"]["line"]: finding["message"].partition(" is ")[2].strip('"')
        for finding in found
        if finding["severity"] == "information"
    }
    errors = {finding["range"]["start"]["line"]: finding["rule"] for finding in found if finding["severity"] == "error"}
    expected_types = {at: line.split("# ")[1] for at, line in enumerate(lines) if line.startswith("reveal_type")}
    expected_errors = {at: line.split("# error: ")[1] for at, line in enumerate(lines) if "# error: " in line}
    assert revealed == expected_types
    assert errors == expected_errors
