"""docs/apiserver.md says what is true: which kinds are judged, what is refused, and where the server differs."""

import re
from pathlib import Path

import pytest
from conformance.known_differences import KNOWN

from samples.embedded import Raw
from steersman.apiserver import ApiServer
from steersman.apiserver.admission.builtin_plugins import BUILTIN_PLUGINS, STORED_PLUGINS
from steersman.apiserver.admission.unsupported_features import REFUSED
from steersman.apiserver.registry import builtin_definitions
from steersman.apiserver.registry.kind_rules import is_validated

PAGE = (Path(__file__).parents[2] / "docs" / "apiserver.md").read_text(encoding="utf-8")


def section(title: str) -> list[str]:
    """The lines below a heading."""
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0].splitlines()


def kinds_table() -> list[str]:
    """The rows of the table, from the registry; questions such as SubjectAccessReview are answered, not judged."""
    rows: dict[str, tuple[list[str], list[str]]] = {}
    for definition in builtin_definitions():
        judged, structural = rows.setdefault(definition.gvk.api_version, ([], []))
        refused = (definition.gvk.group, definition.resource) in REFUSED
        if not refused and not definition.gvk.kind.endswith("Review"):
            (judged if is_validated(definition.gvk) else structural).append(definition.gvk.kind)
    return [
        f"| `{name}` | {', '.join(sorted(judged))} | {', '.join(sorted(structural))} |".replace("|  |", "| |")
        for name, (judged, structural) in sorted(rows.items())
        if judged or structural
    ]


def test_what_is_not_judged_is_listed():
    rows = [line for line in section("What is served") if line.startswith("| `")]
    assert rows == kinds_table(), "\n".join(kinds_table())


def test_all_admission_plugins_are_listed():
    rows = [line.split("|")[1] for line in section("Admission") if line.startswith("| `")]
    assert re.findall(r"`(\w+)`", " ".join(rows)) == [*BUILTIN_PLUGINS, *STORED_PLUGINS, "ResourceQuota"]


def test_what_differs_on_purpose_is_listed():
    told = [line for line in section("Where it differs") if line.startswith("- ")]
    reasons = dict.fromkeys(known.reason for known in KNOWN)
    assert len(told) == len(reasons), "\n".join(reasons)


@pytest.fixture
async def raw():
    async with ApiServer() as server:
        yield Raw(server.handler)


async def test_objects_that_only_the_server_could_act_on_are_refused(raw):
    refused = [
        ("apiregistration.k8s.io", "apiservices", "APIService"),
    ]
    for group, resource, kind in refused:
        path = f"/apis/{group}/v1/{resource}"
        answer = await raw.post(path, {"apiVersion": f"{group}/v1", "kind": kind, "metadata": {"name": "a"}})
        assert (answer.code, answer.body["reason"]) == (403, "Forbidden"), answer.text
        assert "this server" in answer.body["message"]
        assert "a" not in (await raw.get(path)).names


async def test_the_page_lists_what_is_stored_and_not_enforced(raw):
    body = {"apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "PriorityLevelConfiguration"}
    body |= {"metadata": {"name": "a"}, "spec": {}}
    made = await raw.post("/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations", body)
    assert "does not limit requests" in made.headers["Warning"], made.text


async def test_no_container_can_be_reached(raw):
    pod = {"metadata": {"name": "p"}, "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}}
    assert (await raw.post("/api/v1/namespaces/default/pods", pod)).code == 201
    assert (await raw.post("/api/v1/nodes", {"metadata": {"name": "n"}})).code == 201
    status = {"status": {"addresses": [{"type": "InternalIP", "address": "192.0.2.1"}]}}
    assert (await raw.patch("/api/v1/nodes/n/status", status)).code == 200
    for name in ("exec", "attach", "portforward"):
        for method in ("GET", "POST"):
            answer = await raw.send(method, f"/api/v1/namespaces/default/pods/p/{name}")
            assert (answer.code, answer.body["message"]) == (400, "Upgrade request required"), (method, name)
    assert (await raw.get("/api/v1/namespaces/default/pods/p/log")).code == 404
