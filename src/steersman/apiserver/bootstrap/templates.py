"""The objects that kube-apiserver creates at its start, as templates.

Guarantees
- The files in ``data`` hold what kube-apiserver stores; ``tools/bootstrap-objects`` writes them.
- A file is read once per process, on first use. An object is its template with a uid and a time filled in, so a start
  decodes and encodes no objects.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from steersman.aio import new_uid, utc_now
from steersman.apiserver.registry.builtin.service_addresses import held
from steersman.objects import format_time

TemplateFile = Literal["objects", "policy", "address"]
#: The number of last digits of a uid that count the objects of a server.
_COUNTED = 12


class Template(NamedTuple):
    """An object with placeholders for its uid and its times."""

    #: The key of the object after the prefix of its resource.
    key: str
    value: bytes
    #: The storage keys of the addresses that the object reserves.
    held: tuple[str, ...]


class ResourceTemplates(NamedTuple):
    """The templates of one resource."""

    group: str
    version: str
    resource: str
    templates: tuple[Template, ...]


class _Metadata(msgspec.Struct):
    name: str
    namespace: str = ""


class _Named(msgspec.Struct):
    metadata: _Metadata
    kind: str


@cache
def read_templates(file: TemplateFile) -> tuple[ResourceTemplates, ...]:
    """The templates of a file, by resource."""
    raw = (Path(__file__).parent / "data" / f"{file}.json").read_bytes()
    found: list[ResourceTemplates] = []
    for path, objects in msgspec.json.decode(raw, type=dict[str, list[msgspec.Raw]]).items():
        api_version, _, resource = path.rpartition("/")
        group, _, version = api_version.rpartition("/")
        found.append(ResourceTemplates(group, version, resource, tuple(map(_template, objects))))
    return tuple(found)


def _template(raw: msgspec.Raw) -> Template:
    text = bytes(raw)
    named = msgspec.json.decode(text, type=_Named)
    value = text.replace(b"%", b"%%").replace(b"<uid>", b"%(uid)b").replace(b"<now>", b"%(now)b")
    namespace, name = named.metadata.namespace, named.metadata.name
    addresses: Any = held(msgspec.json.decode(text)) if named.kind == "Service" else ()
    return Template(f"{namespace}/{name}" if namespace else name, value, tuple(addresses))


class Stamp:
    """Fills in templates: each object has its own uid, and all have the same time."""

    def __init__(self) -> None:
        first = new_uid()
        self._head, self._number = first[:-_COUNTED], int(first[-_COUNTED:], 16)
        self._now = format_time(utc_now()).encode()
        #: The uid of the last object.
        self.uid = b""

    def fill(self, template: Template) -> bytes:
        """The stored bytes of an object."""
        self._number = (self._number + 1) % 16**_COUNTED
        self.uid = f"{self._head}{self._number:012x}".encode()
        return template.value % {b"uid": self.uid, b"now": self._now}
