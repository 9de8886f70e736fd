"""Golang: what Go prints, parses and says, for messages and verdicts equal to kube-apiserver's. Pure.

Guarantees
- Texts and messages equal those of the Go release that Kubernetes 1.37 is built with.
- Safe on hostile input: time is linear in the input or bounded by a budget.

Two packages stand beside this surface: `steersman.golang.regexp` and `steersman.golang.protobuf`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from steersman._lazy_names import lazy_names

# Imported on first use: a client needs few of them.
if TYPE_CHECKING:
    from steersman.golang.base64 import base64_problem as base64_problem
    from steersman.golang.durations import (
        duration_nanoseconds as duration_nanoseconds,
        printed_duration as printed_duration,
    )
    from steersman.golang.json_encoder import escape_html as escape_html, printed_json as printed_json
    from steersman.golang.json_errors import (
        cannot_unmarshal as cannot_unmarshal,
        json_problem as json_problem,
        json_type as json_type,
        too_large_number as too_large_number,
    )
    from steersman.golang.json_syntax import json_syntax_problem as json_syntax_problem
    from steersman.golang.json_text import readable_json as readable_json
    from steersman.golang.mail import is_email as is_email
    from steersman.golang.netip import Address as Address, parse_address as parse_address, parse_prefix as parse_prefix
    from steersman.golang.numbers import printed_number as printed_number
    from steersman.golang.portable_patterns import check_pattern as check_pattern
    from steersman.golang.quotes import (
        cut as cut,
        quoted as quoted,
        quoted_bytes as quoted_bytes,
        quoted_in_full as quoted_in_full,
    )
    from steersman.golang.strconv import parse_int as parse_int, parse_uint as parse_uint
    from steersman.golang.times import time_problem as time_problem
    from steersman.golang.url import is_uri as is_uri, uri_problem as uri_problem, url_problem as url_problem
    from steersman.golang.values import (
        deeply_equal as deeply_equal,
        printed_value as printed_value,
        type_name as type_name,
    )
    from steersman.golang.yaml_dumper import YamlBlockDumper as YamlBlockDumper, YamlDumper as YamlDumper
    from steersman.golang.yaml_scalars import (
        WrongTag as WrongTag,
        tagged_yaml_scalar as tagged_yaml_scalar,
        yaml_scalar as yaml_scalar,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "steersman.golang.base64": ["base64_problem"],
            "steersman.golang.durations": ["duration_nanoseconds", "printed_duration"],
            "steersman.golang.json_encoder": ["escape_html", "printed_json"],
            "steersman.golang.json_errors": ["cannot_unmarshal", "json_problem", "json_type", "too_large_number"],
            "steersman.golang.json_syntax": ["json_syntax_problem"],
            "steersman.golang.json_text": ["readable_json"],
            "steersman.golang.mail": ["is_email"],
            "steersman.golang.netip": ["Address", "parse_address", "parse_prefix"],
            "steersman.golang.numbers": ["printed_number"],
            "steersman.golang.portable_patterns": ["check_pattern"],
            "steersman.golang.quotes": ["cut", "quoted", "quoted_bytes", "quoted_in_full"],
            "steersman.golang.strconv": ["parse_int", "parse_uint"],
            "steersman.golang.times": ["time_problem"],
            "steersman.golang.url": ["is_uri", "uri_problem", "url_problem"],
            "steersman.golang.values": ["deeply_equal", "printed_value", "type_name"],
            "steersman.golang.yaml_dumper": ["YamlBlockDumper", "YamlDumper"],
            "steersman.golang.yaml_scalars": ["WrongTag", "tagged_yaml_scalar", "yaml_scalar"],
        },
    )

#: Programs import nothing from this room: its names are for other rooms.
__all__: list[str] = []
