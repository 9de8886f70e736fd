"""Descriptions of the built-in definitions, from the source of their generated classes.

Guarantees
- A module's source is read once, when one of its definitions is first described; without source there is no
  description, and no error.
- Wrapped source lines are joined into paragraphs again.
- Metadata has kube-apiserver's descriptions (``metadata_descriptions.json``, made by ``tools/shapes``), because its
  classes are written by hand and documented differently.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

import msgspec

from steersman import kinds
from steersman.schemas import class_description, own_descriptions

_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1"
_LIST_STARTS: Final = ("- ", "* ", "1. ")


class Description(NamedTuple):
    """The description of a definition, and of its fields by JSON name."""

    text: str
    fields: dict[str, str]


@cache
def _metadata() -> dict[str, dict[str, str]]:
    raw = files("steersman.apiserver.discovery").joinpath("metadata_descriptions.json").read_bytes()
    return msgspec.json.decode(raw, type=dict[str, dict[str, str]])


@cache
def common_fields() -> dict[str, str]:
    """The descriptions of the fields that all objects have."""
    texts = _metadata()["TypeMeta"] | _metadata()["PartialObjectMetadata"]
    return {name: texts[name] for name in ("apiVersion", "kind", "metadata")}


def describe(name: str) -> Description:
    """The description of a definition such as ``io.k8s.api.core.v1.Container``; empty if there is none."""
    package, _, short = name.rpartition(".")
    if package == _META and short in _metadata():
        texts = _metadata()[short]
        return Description(texts[""], {field: said for field, said in texts.items() if field})
    own = _metadata()["metadata"].get(name)
    known = {} if own is None else {"metadata": own}
    cls = kinds.class_of_definition(name)
    if cls is None:
        return Description("", known)
    spelled = {field.name: field.encode_name for field in msgspec.structs.fields(cls)}
    fields = {spelled[field]: _unwrapped(said) for field, said in own_descriptions(cls).items() if field in spelled}
    return Description(_unwrapped(class_description(cls)), fields | known)


def _unwrapped(text: str) -> str:
    """The text with one line per paragraph; a list keeps its lines."""
    lines: list[str] = []
    for line in text.split("\n"):
        words = line.strip()
        if lines and words and lines[-1] and not words.startswith(_LIST_STARTS):
            lines[-1] += f" {words}"
        else:
            lines.append(words)
    return "\n".join(lines)
