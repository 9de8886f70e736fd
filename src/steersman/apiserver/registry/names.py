"""The rules of names, in kube-apiserver's words."""

from __future__ import annotations

import re

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_DNS_LABEL = re.compile(_LABEL)
_DNS_1035 = re.compile("[a-z]([-a-z0-9]*[a-z0-9])?")

_SUBDOMAIN_WORDS = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_LABEL_WORDS = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_DNS_1035_WORDS = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)


def dns_subdomain(name: str, *, prefix: bool = False) -> list[str]:
    """What is wrong with the name of most kinds."""
    return _problems(name, _SUBDOMAIN, 253, _SUBDOMAIN_WORDS, prefix=prefix)


def dns_label(name: str, *, prefix: bool = False) -> list[str]:
    """What is wrong with the name of a Namespace and its like."""
    problems = _problems(name, _DNS_LABEL, 63, _LABEL_WORDS, prefix=prefix)
    if _LABEL_WORDS in problems and _SUBDOMAIN.fullmatch(name):
        problems[-1] = "must not contain dots"
    return problems


def dns_1035_label(name: str, *, prefix: bool = False) -> list[str]:
    """What is wrong with the name of a Service and its like."""
    return _problems(name, _DNS_1035, 63, _DNS_1035_WORDS, prefix=prefix)


def path_segment(name: str, *, prefix: bool = False) -> list[str]:
    """What is wrong with the name of a Role and its like, which only have to fit into a path."""
    if not prefix and name in {".", ".."}:
        return [f"may not be '{name}'"]
    return [f"may not contain '{character}'" for character in "/%" if character in name]


def _problems(name: str, pattern: re.Pattern[str], longest: int, words: str, *, prefix: bool) -> list[str]:
    problems = [f"must be no more than {longest} characters"] if len(name.encode()) > longest else []
    # What is generated behind a prefix makes an end of '-' a good one.
    judged = f"{name[:-1]}a" if prefix and name.endswith("-") else name
    if not pattern.fullmatch(judged):
        problems.append(words)
    return problems
