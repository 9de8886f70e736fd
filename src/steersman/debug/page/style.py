"""The style of the debug page, and the short script that refreshes it.

Guarantees
- The page is complete without the script. The script only reloads it and keeps what was opened, filtered or scrolled.
- The content security policy names the hashes of this style and this script, so nothing else on the page runs.
"""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from importlib.resources import files


def _asset(name: str) -> str:
    return (files("steersman.debug.page") / "assets" / name).read_text(encoding="utf-8")


STYLE = _asset("page.css")
SCRIPT = _asset("page.js")


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


#: What a browser may do with the page: this style, this script, and asking the same server again.
POLICY = (
    f"default-src 'none'; style-src {_hash(STYLE)}; script-src {_hash(SCRIPT)}; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'"
)
