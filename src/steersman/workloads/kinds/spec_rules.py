"""The rules of a spec beyond its schema.

They are functions, not CEL rules of the schema: with those, each session would load a compiler, for 11 sentences.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from steersman.objects.field_problems import FieldProblem, invalid_without_value, problem
from steersman.workloads.kinds.immutability import refused_changes

#: A JSON tree with defaults filled in, which fits its schema.
_Tree: TypeAlias = Mapping[str, Any]


def spec_problems(kind: str, old: _Tree | None, new: _Tree) -> list[FieldProblem]:
    """The rules that the spec of an object breaks, and the changes that its kind refuses.

    A rule that the old object broke in the same place is not reported again.
    """
    spec: _Tree = new.get("spec") or {}
    broken = list(broken_rules(kind, spec))
    if old is None:
        return [invalid_without_value(path, rule) for path, rule in broken]
    before: _Tree = old.get("spec") or {}
    known = set(broken_rules(kind, before)) if broken else set[tuple[str, str]]()
    problems = [invalid_without_value(path, rule) for path, rule in broken if (path, rule) not in known]
    refused = refused_changes(kind, before, spec)
    return problems + [problem(path, "FieldValueForbidden", detail=why) for path, why in refused.items()]


def broken_rules(kind: str, spec: _Tree) -> Iterator[tuple[str, str]]:
    """The rules that a spec breaks: the path of the value, and a sentence that says what to write."""
    if kind == "Executable":
        yield from _executable_rules("spec", spec)
    elif kind == "ExecutableReplicaSet":
        yield from _executable_rules("spec.template.spec", _part(_part(spec, "template"), "spec"))
    elif kind == "Container":
        yield from _container_rules("spec", spec)
    elif kind == "Service":
        yield from _service_rules("spec", spec)


def _executable_rules(path: str, spec: _Tree) -> Iterator[tuple[str, str]]:
    if spec.get("executionType") == "IDE":
        yield path, "executionType IDE is not supported: no IDE protocol is implemented; use Process"
    if _has(spec, "monitorPid") and _has_mode(spec, "session", "cleanup"):
        yield path, "monitorPid needs mode persistent"
    yield from _probe_rules(path, spec)


def _container_rules(path: str, spec: _Tree) -> Iterator[tuple[str, str]]:
    if not _has(spec, "image") and not _has(spec, "build"):
        yield path, "a container needs an image, or a build that makes one"
    is_session = _has_mode(spec, "session")
    if not is_session and not _has(spec, "containerName"):
        yield path, "containerName names the container to reuse: modes other than session need it"
    if _has(_part(spec, "steersman"), "attach") and not (is_session and spec.get("restartPolicy") == "no"):
        yield (
            path,
            "steersman.attach names a program that starts the container once: use mode session and restartPolicy no",
        )
    yield from _probe_rules(path, spec)


def _service_rules(path: str, spec: _Tree) -> Iterator[tuple[str, str]]:
    if spec.get("protocol") == "UDP":
        yield path, "protocol UDP is not supported: the proxy forwards TCP alone"
    if spec.get("addressAllocationMode") == "Proxyless" and _has(spec, "address"):
        yield path, "a Proxyless service has the address of its endpoint: leave address unset"


def _probe_rules(path: str, spec: _Tree) -> Iterator[tuple[str, str]]:
    probes: Sequence[_Tree] = spec.get("healthProbes") or ()
    for index, probe in enumerate(probes):
        where = f"{path}.healthProbes[{index}]"
        if (probe["type"] == "HTTP") != _has(probe, "httpProbe"):
            yield where, "an HTTP probe needs httpProbe, and no other"
        if (probe["type"] == "Executable") != _has(probe, "executableProbe"):
            yield where, "an Executable probe needs executableProbe, and no other"
    probes = _part(spec, "steersman").get("healthProbes") or ()
    for index, probe in enumerate(probes):
        if sum(_has(probe, name) for name in ("tcp", "exec", "http")) != 1:
            yield f"{path}.steersman.healthProbes[{index}]", "a probe needs one of tcp, exec and http"


def _part(tree: _Tree, name: str) -> _Tree:
    return tree.get(name) or {}


def _has(tree: _Tree, name: str) -> bool:
    return tree.get(name) is not None


def _has_mode(spec: _Tree, *modes: str) -> bool:
    """Whether the mode is one of these; ``persistent`` wins over it."""
    return not spec.get("persistent") and spec.get("mode") in modes
