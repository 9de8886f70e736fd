"""The rules for names, labels and keys. Each function returns kube-apiserver's messages; empty if the text is valid."""

from __future__ import annotations

import re

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS_LABEL = re.compile(_LABEL)
_SUBDOMAIN = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_LABEL_UNDERSCORE = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SUBDOMAIN_UNDERSCORE = re.compile(rf"{_LABEL_UNDERSCORE}(\.{_LABEL_UNDERSCORE})*")
_DNS_1035 = re.compile("[a-z]([-a-z0-9]*[a-z0-9])?")
_NAME = re.compile("([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_VALUE = re.compile(f"({_NAME.pattern})?")

_SUBDOMAIN_MAX = 253
_LABEL_MAX = 63


def expected(words: str, pattern: str, *examples: str) -> str:
    """The expected form of a text that does not match a pattern."""
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{words} ({f'e.g. {shown}' if shown else ''}regex used for validation is '{pattern}')"


def too_long(text: str, longest: int, unit: str = "characters") -> list[str]:
    """The message for a text with too many bytes; some rules call them characters."""
    if len(text.encode("utf-8", "surrogatepass")) <= longest:
        return []
    return [f"must be no more than {longest} {unit}"]


_LABEL_WORDS = expected(
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character",
    _LABEL,
    "my-name",
    "123-abc",
)
_SUBDOMAIN_WORDS = expected(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character",
    _SUBDOMAIN.pattern,
    "example.com",
)
_UNDERSCORE_WORDS = expected(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start "
    "and end with an alphanumeric character",
    _SUBDOMAIN_UNDERSCORE.pattern,
    "example.com",
)
_WILDCARD = re.compile(rf"\*\.{_SUBDOMAIN.pattern}")
_WILDCARD_WORDS = expected(
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower "
    "case alphanumeric characters, '-' or '.' and end with an alphanumeric character",
    _WILDCARD.pattern,
    "*.example.com",
)
_DNS_1035_WORDS = expected(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character",
    _DNS_1035.pattern,
    "my-name",
    "abc-123",
)
_KEY_WORDS = expected(
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
    _NAME.pattern,
    "MyName",
    "my.name",
    "123-abc",
)
_VALUE_WORDS = expected(
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character",
    _VALUE.pattern,
    "MyValue",
    "my_value",
    "12345",
)


def _masked(name: str) -> str:
    """A generateName prefix as it is validated: the suffix generated after a '-' makes it end validly."""
    return f"{name[:-2]}a" if len(name) > 1 and name.endswith("-") else name


def dns_label(text: str, *, prefix: bool = False) -> list[str]:
    """Check a DNS label, such as the name of a Namespace or a container."""
    text = _masked(text) if prefix else text
    problems = too_long(text, _LABEL_MAX)
    if not _DNS_LABEL.fullmatch(text):
        problems.append("must not contain dots" if _SUBDOMAIN.fullmatch(text) else _LABEL_WORDS)
    return problems


def dns_subdomain(text: str, *, prefix: bool = False) -> list[str]:
    """Check a DNS subdomain, such as the name of most objects."""
    text = _masked(text) if prefix else text
    return too_long(text, _SUBDOMAIN_MAX) + ([] if _SUBDOMAIN.fullmatch(text) else [_SUBDOMAIN_WORDS])


def wildcard_subdomain(text: str) -> list[str]:
    """Check a DNS subdomain whose first label is ``*``, such as the host of an Ingress."""
    return too_long(text, _SUBDOMAIN_MAX) + ([] if _WILDCARD.fullmatch(text) else [_WILDCARD_WORDS])


def dns_subdomain_with_underscores(text: str) -> list[str]:
    """Check a DNS subdomain of a search list."""
    return too_long(text, _SUBDOMAIN_MAX) + ([] if _SUBDOMAIN_UNDERSCORE.fullmatch(text) else [_UNDERSCORE_WORDS])


def dns_1035_label(text: str, *, prefix: bool = False) -> list[str]:
    """Check a DNS label that begins with a letter, such as the name of a Service."""
    text = _masked(text) if prefix else text
    return too_long(text, _LABEL_MAX) + ([] if _DNS_1035.fullmatch(text) else [_DNS_1035_WORDS])


def path_segment(text: str, *, prefix: bool = False) -> list[str]:
    """Check a name that only has to fit into a path, such as that of a Role."""
    if not prefix and text in {".", ".."}:
        return [f"may not be '{text}'"]
    return [f"may not contain '{character}'" for character in "/%" if character in text]


def qualified_name(text: str) -> list[str]:
    """Check a label key or another qualified name: with an optional domain prefix, ``example.com/name``."""
    if len(text) <= _LABEL_MAX and _NAME.fullmatch(text):
        return []
    prefix, slash, name = text.rpartition("/")
    if "/" in prefix:
        return [
            f"a valid label key {_KEY_WORDS} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    problems: list[str] = []
    if slash and not prefix:
        problems.append("prefix part must be non-empty")
    elif slash:
        # The length of a prefix is counted in bytes, and reported so.
        problems += [f"prefix part {said}" for said in too_long(prefix, _SUBDOMAIN_MAX, "bytes")]
        if not _SUBDOMAIN.fullmatch(prefix):
            problems.append(f"prefix part {_SUBDOMAIN_WORDS}")
    if not name:
        problems.append("name part must be non-empty")
    else:
        problems += [f"name part {said}" for said in too_long(name, _LABEL_MAX, "bytes")]
    if not _NAME.fullmatch(name):
        problems.append(f"name part {_KEY_WORDS}")
    return problems


def label_value(text: str) -> list[str]:
    """Check the value of a label."""
    return too_long(text, _LABEL_MAX, "bytes") + ([] if _VALUE.fullmatch(text) else [_VALUE_WORDS])
