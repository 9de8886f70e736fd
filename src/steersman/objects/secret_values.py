"""Which values of an object are secret, and texts without them. Pure.

This is the one rule for every text that leaves the process: errors (and so logs, conditions and Events), warnings, plans
and the reports of tests.

Guarantees
- Secret are all values of a Secret's ``data`` and ``stringData``, and in any object the fields named as secret, such as
  ``password`` or ``apiKey``, and the values of variables named so.
- A text shows a secret value in no form: plain, base64, escaped as by JSON, Go or Python, or cut at its end.
- The last applied configuration, which repeats an object as text, counts as secret.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final, TypeAlias, cast

import msgspec

from steersman.golang import escape_html, quoted_in_full

Mask: TypeAlias = Callable[[Any], Any]

#: What is shown instead of a secret value.
HIDDEN: Final = "(hidden)"

_SECRET: Final = re.compile(
    r"(?i)secret|token|passw(or)?d|passphrase|credential|(api|private|access|account)[_-]?key|connection[_-]?string"
)
#: Ends of names that contain these words but lead to no secret, such as ``secretName`` and ``tokenExpirationSeconds``.
_PLAIN: Final = re.compile(
    r"(?i)(name|ref|reference|path|file|dir|seconds|url|uri|type|mode|enabled|policy|version|namespace|kind|group|audience"
    r"|ttl|limit|count|length|size|selector|label|class|review)s?$"
)
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
#: The fields of a Secret with its values, and the paths of a JSON patch that lead to them.
_VALUES: Final = ("data", "stringData")
#: Shorter values are only hidden as whole words: each letter of a message may be one.
_SHORT: Final = 4
#: So many characters of the beginning of a long value already count as the value: servers cut long texts.
_BEGINNING, _LONG = 8, 16


def is_secret_name(name: str) -> bool:
    """Whether a field or variable of this name holds a secret."""
    return _SECRET.search(name) is not None and _PLAIN.search(name) is None


def hide(value: Any, *, field: str = "", secret: bool = False, mask: Mask = lambda _: HIDDEN) -> Any:
    """A copy of an object, or of the part at ``field``, in which ``mask`` replaces each secret value.

    ``secret`` says that it is a Secret, or a part or patch of one; a whole object says so itself.
    """
    if isinstance(value, dict) and not field:
        tree = cast("dict[str, Any]", value)
        secret = secret or (tree.get("kind") == "Secret" and tree.get("apiVersion", "v1") == "v1")
    return _hide(value, mask, within=_is_hidden(field, secret=secret), top=not field, secret=secret)


def _is_hidden(field: str, *, secret: bool) -> bool:
    """Whether a path such as ``data.password`` or ``spec.auth.token`` leads to a secret value."""
    if secret and re.match(r"(data|stringData)(\W|$)", field):
        return True
    last = re.split(r"[.\[]", field.rstrip("]"))[-1]
    return is_secret_name(last) or _LAST_APPLIED in field


def _hide(value: Any, mask: Mask, *, within: bool = False, top: bool = False, secret: bool = False) -> Any:
    match value:
        case dict():
            tree = cast("dict[str, Any]", value)
            named = isinstance(tree.get("name"), str) and is_secret_name(tree["name"])
            return {
                name: _hide(
                    each,
                    mask,
                    within=within
                    or (top and secret and name in _VALUES)
                    or (named and name == "value")
                    or name == _LAST_APPLIED
                    or (is_secret_name(name) and not _has_fields(each)),
                )
                for name, each in tree.items()
            }
        case list():
            return [_hide(each, mask, within=within) for each in cast("list[Any]", value)]
        case None | True | False | "":
            return value
        case _:
            return mask(value) if within else value


def _has_fields(value: Any) -> bool:
    """Whether a value has fields of its own, as a reference to a Secret does."""
    if isinstance(value, list):
        return any(map(_has_fields, cast("list[Any]", value)))
    return isinstance(value, dict)


class Redaction:
    """Removes the secret values of an object, or of a patch, from texts: ``Redaction(body, secret=True)(message)``."""

    def __init__(self, body: bytes | Any, *, secret: bool = False) -> None:
        found: dict[str, None] = {}

        def take(value: Any) -> Any:
            found.update(dict.fromkeys(_forms(value)))
            return value

        tree = _decoded(body) if isinstance(body, bytes) else body
        if isinstance(tree, list):
            for operation in cast("list[Any]", tree):  # a JSON patch
                if isinstance(operation, dict):
                    step = cast("dict[str, Any]", operation)
                    path = str(step.get("path", "")).lstrip("/").replace("/", ".")
                    hide(step.get("value"), field=path, secret=secret, mask=take)
        else:
            hide(tree, secret=secret, mask=take)
        self._forms = sorted(found, key=len, reverse=True)

    def __call__(self, text: str) -> str:
        """The text without secret values."""
        for form in self._forms:
            if len(form) >= _LONG:
                text = _without_beginning(text, form)
            elif len(form) >= _SHORT:
                text = text.replace(form, HIDDEN)
            else:
                text = re.sub(rf"(?<!\w){re.escape(form)}(?!\w)", HIDDEN, text)
        return text


def _decoded(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _forms(value: Any) -> Iterator[str]:
    """All forms in which a text may show a value."""
    text = value if isinstance(value, str) else json.dumps(value)
    plain = [text]
    with suppress(ValueError):  # the values of `data` are base64 already
        plain.append(base64.b64decode(text, validate=True).decode())
    for each in filter(None, plain):
        encoded = base64.b64encode(each.encode("utf-8", "surrogatepass")).decode()
        escaped = json.dumps(each, ensure_ascii=False)[1:-1]
        yield from (each, each.strip(), encoded, encoded.rstrip("="), escaped, escape_html(escaped))
        yield from (json.dumps(each)[1:-1], quoted_in_full(each)[1:-1], repr(each)[1:-1])


def _without_beginning(text: str, form: str) -> str:
    """The text without the value, also where only its beginning is shown."""
    at = 0
    while (at := text.find(form[:_BEGINNING], at)) >= 0:
        end = _BEGINNING
        while end < len(form) and text[at + end : at + end + 1] == form[end]:
            end += 1
        text = f"{text[:at]}{HIDDEN}{text[at + end :]}"
        at += len(HIDDEN)
    return text
