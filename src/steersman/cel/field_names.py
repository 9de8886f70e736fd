"""Field names in the spelling of expressions.

Guarantees
- `escape` and `unescape` spell names as kube-apiserver does: ``__dot__``, ``__dash__``, ``__slash__``,
  ``__underscores__``, and reserved words between double underscores.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

RESERVED: Final = frozenset(
    "true false null in as break const continue else for function if import let loop package namespace return var void while".split()  # noqa: SIM905
)
_SPELLINGS: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_SIGNS: Final = {"underscores": "__", "dot": ".", "dash": "-", "slash": "/"}
_SAYABLE: Final = re.compile(r"[A-Za-z_./-][A-Za-z0-9_./-]*")
_SPELLED: Final = re.compile(r"__([^_]+)__")


@lru_cache(maxsize=4096)
def escape(name: str) -> str | None:
    """A field name in an expression's spelling; None if it has none."""
    if not _SAYABLE.fullmatch(name):
        return None
    if name in RESERVED:
        return f"__{name}__"
    return re.sub(r"__|[-./]", lambda sign: _SPELLINGS[sign[0]], name)


@lru_cache(maxsize=4096)
def unescape(name: str) -> str | None:
    """The field that an expression names; None if the spelling is invalid."""
    if "__" not in name:
        return name
    wrong = False

    def sign(found: re.Match[str]) -> str:
        nonlocal wrong
        word = found[1]
        if word in _SIGNS:
            return _SIGNS[word]
        wrong = wrong or word not in RESERVED or len(found[0]) != len(name)
        return word

    plain = _SPELLED.sub(sign, name)
    return None if wrong else plain
