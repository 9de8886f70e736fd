"""Int-or-string: a number or a string, such as a port (``80`` or ``"http"``) or a share (``3`` or ``"25%"``)."""

import re
from typing import Final, Literal, TypeAlias

IntOrString: TypeAlias = int | str
"""A number or a string; the wire format preserves which."""

_PERCENT: Final = re.compile(r"[+-]?[0-9]{1,18}%")


def scaled_value(value: IntOrString, total: int, *, rounding: Literal["up", "down"]) -> int:
    """Resolve a count or a percentage of ``total``, as rolling updates and disruption budgets do."""
    if isinstance(value, int):
        return value
    if not _PERCENT.fullmatch(value):
        shown = value if len(value) <= 80 else f"{value[:80]}..."
        raise ValueError(f'neither a count nor a percentage: {shown!r}; write a number, or a percentage such as "25%"')
    share = int(value[:-1]) * total
    return -(-share // 100) if rounding == "up" else share // 100
