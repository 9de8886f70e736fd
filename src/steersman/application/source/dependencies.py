"""What a service depends on."""

from __future__ import annotations

from typing import Literal, cast, get_args

from steersman.application.model import DependsOn
from steersman.application.syntax.nodes import ListNode, Node, ScalarNode, is_null
from steersman.application.syntax.values import Values

_Condition = Literal["service_started", "service_healthy", "service_completed_successfully"]
_CONDITIONS = get_args(_Condition)


def read_depends_on(values: Values, node: Node | None) -> list[tuple[Node, DependsOn]]:
    """The dependencies of a service, each with its place."""
    if isinstance(node, ListNode):
        names = [item for item in node.items if values.text(item, "an item of depends_on") is not None]
        return [(item, DependsOn(service=item.text)) for item in names if isinstance(item, ScalarNode)]
    table = values.table(node, "depends_on")
    found: list[tuple[Node, DependsOn]] = []
    for name, value in table.items.items() if table else ():
        if is_null(value):
            found.append((table.key(name) if table else value, DependsOn(service=name)))
            continue
        options = values.table(value, f"depends_on: {name}")
        if options is None or table is None:
            continue
        values.check_keys(options, "a dependency", ("condition", "restart", "required"))
        condition = values.choice(options.get("condition"), "condition", _CONDITIONS)
        depends = DependsOn(
            service=name,
            condition=cast("_Condition", condition or "service_started"),
            restart=values.boolean(options.get("restart"), "restart"),
            required=values.boolean(options.get("required"), "required", default=True),
        )
        found.append((table.key(name), depends))
    return found
