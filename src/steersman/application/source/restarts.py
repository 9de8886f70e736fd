"""Whether a service starts again after its end."""

from __future__ import annotations

import re
from typing import Literal, cast, get_args

from steersman.application.model import Restart
from steersman.application.syntax.nodes import MapNode, Node, ScalarNode
from steersman.application.syntax.report import shown
from steersman.application.syntax.values import Values

_Policy = Literal["no", "always", "on-failure", "unless-stopped"]
_POLICIES = get_args(_Policy)


def read_restart(values: Values, node: Node | None, deploy: MapNode | None) -> Restart:
    """Whether a service starts again: ``restart``, else ``deploy.restart_policy``."""
    if node is None:
        policy = values.table(deploy.get("restart_policy"), "restart_policy") if deploy else None
        return _restart_policy(values, policy) if policy else Restart()
    text = values.text(node, "restart")
    if text is None:
        return Restart()
    if text in {"false", "False"} and isinstance(node, ScalarNode) and node.is_plain:
        return Restart()
    found = re.fullmatch(r"(?P<policy>no|always|on-failure|unless-stopped)(?::(?P<most>[0-9]{1,9}))?", text)
    if found is None or (found["most"] and found["policy"] != "on-failure"):
        values.report.error(node, f"restart must be one of {', '.join(_POLICIES)} or on-failure:N, not {shown(text)}")
        return Restart()
    return Restart(policy=cast("_Policy", found["policy"]), maximum=int(found["most"]) if found["most"] else None)


def _restart_policy(values: Values, table: MapNode) -> Restart:
    values.check_keys(table, "restart_policy", ("condition", "max_attempts"), ("delay", "window"))
    conditions: dict[str, _Policy] = {"none": "no", "on-failure": "on-failure", "any": "always"}
    condition = values.choice(table.get("condition"), "condition", conditions) or "any"
    maximum = values.integer(table.get("max_attempts"), "max_attempts")
    return Restart(policy=conditions[condition], maximum=maximum if condition == "on-failure" else None)
