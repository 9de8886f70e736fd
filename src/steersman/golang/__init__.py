"""Golang: what Go prints, parses and says, for messages and verdicts equal to kube-apiserver's. Pure.

Guarantees
- Texts and messages equal those of the Go release that Kubernetes 1.36 is built with.
- Safe on hostile input: time is linear in the input or bounded by a budget.

Two packages stand beside this surface: `steersman.golang.regexp` and `steersman.golang.protobuf`.
"""

from steersman.golang.addresses import is_email, is_uri
from steersman.golang.json_encoding import escape_html, printed_json
from steersman.golang.json_errors import json_type, json_words, too_large_number
from steersman.golang.json_syntax import syntax_problem
from steersman.golang.numbers import printed_number
from steersman.golang.portable_patterns import check_pattern
from steersman.golang.quoting import cut, quoted, quoted_bytes, quoted_in_full
from steersman.golang.values import deeply_equal, printed_value, type_name

__all__ = [
    "check_pattern",
    "cut",
    "deeply_equal",
    "escape_html",
    "is_email",
    "is_uri",
    "json_type",
    "json_words",
    "printed_json",
    "printed_number",
    "printed_value",
    "quoted",
    "quoted_bytes",
    "quoted_in_full",
    "syntax_problem",
    "too_large_number",
    "type_name",
]
