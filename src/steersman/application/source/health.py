"""The health check of a service."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

from steersman.application.model import HealthCheck
from steersman.application.syntax.nodes import Node, ScalarNode
from steersman.application.syntax.report import shown
from steersman.application.syntax.values import Values
from steersman.workloads.kinds import AddedAction, ExecProbe, HttpProbe, TcpProbe

_HEALTH_KEYS = ("disable", "interval", "retries", "timeout", "start_period", "start_interval")


def read_healthcheck(values: Values, node: Node | None) -> tuple[HealthCheck | None, bool]:
    """The health check of a service, and whether the file disables that of the image."""
    table = values.table(node, "healthcheck")
    if table is None:
        return None, False
    readers = _ACTIONS if not table.origin.is_compose else {"test": _exec}
    values.check_keys(table, "healthcheck", (*_HEALTH_KEYS, *readers))
    actions = {key: read(values, each) for key, read in readers.items() if (each := table.get(key)) is not None}
    is_disabled = values.boolean(table.get("disable"), "disable") or None in actions.values()
    interval = values.seconds(table.get("interval"), "interval")
    timeout = values.seconds(table.get("timeout"), "timeout")
    retries = values.integer(table.get("retries"), "retries")
    start_period = values.seconds(table.get("start_period"), "start_period")
    start_interval = values.seconds(table.get("start_interval"), "start_interval")
    if is_disabled:
        return None, True
    if len(actions) > 1:
        values.report.error(table.key([*actions][1]), f"healthcheck has {' and '.join(actions)}: keep only one of them")
    action = next(iter(actions.values()), None)
    if action is None:
        values.report.warn(
            table, "healthcheck without test has no effect: Steersman does not read the check of the image"
        )
        return None, False
    return (
        HealthCheck(
            action=action,
            # Zero means Compose's default.
            interval=interval or 30.0,
            timeout=timeout or 30.0,
            retries=retries or 3,
            start_period=start_period or 0.0,
            start_interval=start_interval,
        ),
        False,
    )


def _exec(values: Values, node: Node) -> ExecProbe | None:
    """The command of a check; None if the file disables that of the image."""
    words = _test(values, node)
    return ExecProbe(command=[*words]) if words != ("NONE",) else None


def _http(values: Values, node: Node) -> HttpProbe:
    url = values.text(node, "http")
    if url is not None and not url.startswith(("http://", "https://")):
        values.report.error(node, f"http must start with http:// or https:// (got {shown(url)})")
    elif url is not None and "{{" not in url and not _has_host(url):
        values.report.error(node, f"http must be a URL with a host and a port up to 65535 (got {shown(url)})")
    return HttpProbe(url=url or "")


def _has_host(url: str) -> bool:
    try:
        parts = urlsplit(url)
        # An invalid port raises.
        return bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _tcp(values: Values, node: Node) -> TcpProbe:
    return TcpProbe(port=values.integer(node, "tcp", least=1, most=65535) or 1)


#: Reads the action of each key that says what to check. Only steersman.yaml has those beside test.
_ACTIONS: Final[dict[str, Callable[[Values, Node], AddedAction | None]]] = {"test": _exec, "http": _http, "tcp": _tcp}


def _test(values: Values, node: Node) -> tuple[str, ...]:
    if isinstance(node, ScalarNode):
        return values.shell_words(node)
    words = values.texts(node, "test")
    match words[:1]:
        case ("NONE",):
            return ("NONE",)
        case ("CMD",) if len(words) > 1:
            return words[1:]
        case ("CMD-SHELL",) if len(words) > 1:
            # As in Docker, further words are the arguments of the shell.
            return "/bin/sh", "-c", *words[1:]
        case _:
            values.report.error(node, "test must be a string, or a list that starts with CMD, CMD-SHELL or NONE")
            return ()
