"""Addresses and ports of services in arguments, variables and probes: ``{{portFor "api"}}``.

Four functions take the name of a service:

- ``portForServing`` and ``addressForServing``: where the workload itself must listen to serve it.
- ``portFor`` and ``addressFor``: where to reach it.

Guarantees
- Text in braces that calls none of the four functions stays as it is: programs have templates of their own.
- A service without an address yet raises `NotYet`, which names the service: the start waits.
- A call that can never succeed raises `TemplateError`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

_CALL: Final = re.compile(
    r"(?:\s*\{\{-\s+|\{\{\s*)(portForServing|portFor|addressForServing|addressFor)\s+"
    r'("(?:[^"\\]|\\.)*"|`[^`]*`)(?:\s+-\}\}\s*|\s*\}\})'
)


class Address(NamedTuple):
    """Where a service listens; an empty host or port 0 is not known yet."""

    host: str = ""
    port: int = 0


class Addresses(NamedTuple):
    """What the templates of one workload can name, by the name of the service."""

    serving: Mapping[str, Address] = {}
    """Services that the workload produces, and where it must listen."""
    services: Mapping[str, Address] = {}
    """All services, and where they listen."""


class NotYet(Exception):
    """A template needs a service that has no address yet. The message says which, as a sentence."""


class TemplateError(Exception):
    """A template can never be filled in. The message says why, as a sentence."""


class Calls(NamedTuple):
    """The names of services in templates."""

    serving: frozenset[str]
    reached: frozenset[str]


def reached_services(texts: Iterable[str]) -> frozenset[str]:
    """The services whose addresses templates in these texts ask for."""
    return calls(texts).reached


def calls(texts: Iterable[str]) -> Calls:
    """The services that templates in these texts name."""
    serving: set[str] = set()
    reached: set[str] = set()
    for text in texts:
        for match in _CALL.finditer(text):
            (serving if match[1].endswith("Serving") else reached).add(_name(match[2]))
    return Calls(frozenset(serving), frozenset(reached))


def expand(text: str, addresses: Addresses) -> str:
    """Replace the templates in a text."""
    if "{{" not in text:
        return text
    return _CALL.sub(lambda match: _value(match[1], _name(match[2]), addresses), text)


def _name(quoted: str) -> str:
    """The name of a service: cluster-scoped, so that the namespace of ``namespace/name`` is dropped."""
    text = quoted[1:-1] if quoted.startswith("`") else re.sub(r"\\(.)", r"\1", quoted[1:-1])
    return text.rpartition("/")[2]


def _value(function: str, service: str, addresses: Addresses) -> str:
    if function.endswith("Serving"):
        address = addresses.serving.get(service)
        if address is None:
            raise TemplateError(
                f"{function} names Service {service}, which this workload does not produce: add it to the annotation"
                " service-producer"
            )
    else:
        address = addresses.services.get(service)
        if address is None:
            raise NotYet(f"Service {service} to be created")
    if function.startswith("port"):
        if not address.port:
            raise NotYet(f"Service {service} to get a port")
        return str(address.port)
    if not address.host:
        raise NotYet(f"Service {service} to get an address")
    return address.host
