"""The variables of a service, from ``env_file`` and ``environment``, and those for interpolation, from ``.env``.

Guarantee: an ``env_file`` that another user owns gets no variables of the shell or ``.env``, which may be secrets of other
services. That user can be the one of the service.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from steersman.application.syntax.dotenv import parse_dotenv, parse_raw_dotenv
from steersman.application.syntax.nodes import ListNode, MapNode, Node, ScalarNode
from steersman.application.syntax.report import Report
from steersman.application.syntax.texts import read_owned_text, read_text
from steersman.application.syntax.values import Values, absolute, plain_text
from steersman.workloads import trusted_users

#: How many names of variables a warning shows.
_NAMES_MAX: Final = 5


def read_dotenv_files(
    files: Sequence[tuple[Path, bool]], environment: Mapping[str, str], report: Report
) -> dict[str, str]:
    """The variables of ``.env`` files. Each file comes with whether it must exist; the last file wins."""
    found: dict[str, str] = {}
    for file, required in files:
        text = read_text(file, report, is_optional=not required)
        if text is not None:
            found.update(parse_dotenv(text, file, {**found, **environment}, report))
    return found


def read_environment(values: Values, service: MapNode) -> dict[str, str]:
    """The variables of a service: ``environment`` overrides ``env_file``, where the last file wins."""
    named = values.named(service.get("environment"), "environment")
    own: dict[str, str] = {}
    unset: list[str] = []
    for name, value in named.items.items() if named else ():
        if not isinstance(value, ScalarNode):
            values.report.error(value, f"environment: {name} must be a string")
            continue
        text = value.origin.environment.get(name) if value.is_null else plain_text(value)
        if text is None:
            unset.append(name)
        else:
            own[name] = text
    found: dict[str, str] = {}
    node = service.get("env_file")
    items = node.items if isinstance(node, ListNode) else (node,) if node is not None else ()
    for item in items:
        # As in Compose, a variable in a file stands for that of `environment` rather than for that of a file.
        found.update(_env_file(values, item, {**found, **own}))
    found.update(own)
    for name in unset:
        found.pop(name, None)
    for name in found:
        if not name or "=" in name or "\0" in name:
            values.report.error(named or service, f"environment: {name!r} is not a valid variable name")
    return found


def _env_file(values: Values, item: Node, earlier: Mapping[str, str]) -> dict[str, str]:
    required, raw, path_node = True, False, item
    if isinstance(item, MapNode):
        values.check_keys(item, "env_file", ("path", "required", "format"))
        required = values.boolean(item.get("required"), "required", default=True)
        raw = values.choice(item.get("format"), "format", ("raw",)) == "raw"
        path_node = item.get("path") or item
    path = values.text(path_node, "the path of env_file")
    if not path:
        return {}
    file = Path(absolute(path_node, path))
    found = read_owned_text(file, values.report, named_at=path_node, is_optional=not required)
    if found is None:
        return {}
    parse = partial(parse_raw_dotenv if raw else parse_dotenv, found.text, file)
    outside = path_node.origin.environment
    strangers = found.owners - _trusted(path_node)
    if not strangers:
        return parse(outside if raw else {**earlier, **outside}, values.report)
    variables = parse({} if raw else earlier, values.report)
    with_outside = parse(outside if raw else {**earlier, **outside}, Report())
    if empty := [name for name, value in with_outside.items() if variables.get(name) != value]:
        more = f" and {len(empty) - _NAMES_MAX} more" if len(empty) > _NAMES_MAX else ""
        values.report.warn(
            path_node,
            f"{file} belongs to another user (uid {', '.join(map(str, sorted(strangers)))}), so {', '.join(empty[:_NAMES_MAX])}"
            f"{more} in it cannot use variables of the shell or .env: set them in environment",
        )
    return variables


def _trusted(node: Node) -> set[int]:
    """The users who may use all variables: this one, and the owner of the file that names the other file."""
    users = trusted_users(node.origin.environment)
    try:
        users.add(node.origin.file.stat().st_uid)
    except OSError:
        return users  # it was removed since it was read
    return users
