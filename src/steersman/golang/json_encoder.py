"""JSON as ``json.Marshal`` writes it: sorted keys, HTML characters escaped, numbers in Go's form."""

import json
from typing import Any, cast

from steersman.golang.numbers import json_float

_HTML = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


def printed_json(value: Any) -> str:
    """A JSON value as text."""
    return escape_html(_written(value))


def escape_html(text: str) -> str:
    """JSON whose characters with a meaning in HTML are escaped."""
    return text.translate(_HTML)


def _written(value: Any) -> str:
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return f"{{{','.join(f'{_text(name)}:{_written(members[name])}' for name in sorted(members))}}}"
    if isinstance(value, list):
        return f"[{','.join(map(_written, cast('list[Any]', value)))}]"
    if isinstance(value, float):
        return json_float(value)
    return _text(value)


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
