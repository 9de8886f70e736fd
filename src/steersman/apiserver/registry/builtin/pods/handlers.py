"""Probes and lifecycle hooks of containers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from steersman.apiserver.registry.builtin.types.formats import header_name, port, port_number
from steersman.apiserver.registry.builtin.types.trees import Tree, items
from steersman.objects.field_problems import FieldProblem, each, forbidden, invalid, not_negative, required, unsupported

_SCHEMES = ("HTTP", "HTTPS")
_REAL_TIME = (
    "SIGRTMAX",
    *(f"SIGRTMAX-{n}" for n in range(1, 15)),
    "SIGRTMIN",
    *(f"SIGRTMIN+{n}" for n in range(1, 16)),
)
_NAMED = """
    ABRT ALRM BUS CHLD CLD CONT FPE HUP ILL INT IO IOT KILL PIPE POLL PROF PWR QUIT SEGV STKFLT STOP SYS TERM
    TRAP TSTP TTIN TTOU URG USR1 USR2 VTALRM WINCH XCPU XFSZ
"""
_SIGNALS = tuple(sorted({*_REAL_TIME, *(f"SIG{name}" for name in _NAMED.split())}))
_WINDOWS_SIGNALS = ("SIGKILL", "SIGTERM")


def _http(path: str, action: Tree) -> list[FieldProblem]:
    problems = [] if action.get("path") else [required(f"{path}.path")]
    problems += each(f"{path}.port", action.get("port", 0), port(action.get("port", 0)))
    if action.get("scheme", "") not in _SCHEMES:
        problems.append(unsupported(f"{path}.scheme", action.get("scheme", ""), _SCHEMES))
    for header in items(action, "httpHeaders"):
        problems += each(f"{path}.httpHeaders", header.get("name", ""), header_name(header.get("name", "")))
    return problems


def _tcp(path: str, action: Tree) -> list[FieldProblem]:
    return each(f"{path}.port", action.get("port", 0), port(action.get("port", 0)))


def _grpc(path: str, action: Tree) -> list[FieldProblem]:
    return each(f"{path}.port", action.get("port", 0), port_number(action.get("port", 0)))


_ACTIONS: Mapping[str, Callable[[str, Tree], list[FieldProblem]]] = {
    "exec": lambda path, action: [] if action.get("command") else [required(f"{path}.command")],
    "httpGet": _http,
    "tcpSocket": _tcp,
    "grpc": _grpc,
}


def _handler(path: str, handler: Tree, grace: int | None) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    given = False
    for name in (*_ACTIONS, "sleep"):
        action = handler.get(name)
        if action is None:
            continue
        if given:
            problems.append(forbidden(f"{path}.{name}", "may not specify more than 1 handler type"))
            continue
        given = True
        if name in _ACTIONS:
            problems += _ACTIONS[name](f"{path}.{name}", action)
        elif grace is not None and not 0 <= action.get("seconds", 0) <= grace:
            detail = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
            problems.append(invalid(f"{path}.sleep", action.get("seconds", 0), detail))
    return problems if given else [*problems, required(path, "must specify a handler type")]


def probes(path: str, container: Tree, grace: int | None) -> list[FieldProblem]:
    """Validate the probes of a container."""
    problems: list[FieldProblem] = []
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        probe = container.get(name)
        if probe is None:
            continue
        where = f"{path}.{name}"
        problems += _probe(where, probe, grace)
        if name == "readinessProbe":
            seconds = probe.get("terminationGracePeriodSeconds")
            if seconds is not None:
                detail = "must not be set for readinessProbes"
                problems.append(invalid(f"{where}.terminationGracePeriodSeconds", seconds, detail))
        elif probe.get("successThreshold", 0) != 1:
            problems.append(invalid(f"{where}.successThreshold", probe.get("successThreshold", 0), "must be 1"))
    return problems


def _probe(path: str, probe: Tree, grace: int | None) -> list[FieldProblem]:
    actions = {name: probe[name] for name in _ACTIONS if name in probe}
    problems = _handler(path, actions, grace)
    for name in ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"):
        problems += not_negative(f"{path}.{name}", probe.get(name))
    seconds = probe.get("terminationGracePeriodSeconds")
    if seconds is not None and seconds <= 0:
        problems.append(invalid(f"{path}.terminationGracePeriodSeconds", seconds, "must be greater than 0"))
    return problems


def lifecycle(path: str, hooks: Tree, grace: int | None, system: str | None) -> list[FieldProblem]:
    """Validate the hooks of a container, in a Pod for this operating system."""
    problems: list[FieldProblem] = []
    for name in ("postStart", "preStop"):
        if name in hooks:
            problems += _handler(f"{path}.{name}", hooks[name], grace)
    signal = hooks.get("stopSignal")
    if signal is not None:
        known = _WINDOWS_SIGNALS if system == "windows" else _SIGNALS
        if system is None:
            detail = "may not be set for containers with empty `spec.os.name`"
            problems.append(forbidden(f"{path}.stopSignal", detail))
        elif system in {"linux", "windows"} and signal not in known:
            problems.append(unsupported(f"{path}.stopSignal", signal, known))
    return problems
