"""Manifests: YAML and JSON texts <-> typed objects. Pure: no IO, no clock, no randomness.

Guarantees
- `load_manifests` reports every mistake of a text at once, with its line, and never returns a part of a text.
- Values mean what they mean to kubectl: ``on`` is a boolean, ``0644`` is octal, a date is a string.
- Several documents, empty documents, Lists, anchors and merge keys are read. Duplicate keys, keys that are not a
  string, tags, and aliases that expand without bound are mistakes.
- No lost fields: what was loaded is sent, and `dump_manifests` writes what `load_manifests` reads back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from steersman._lazy_names import lazy_names

# Imported on first use: only some programs read or write YAML.
if TYPE_CHECKING:
    from steersman.manifests.dumper import dump_manifests as dump_manifests
    from steersman.manifests.loader import load_manifests as load_manifests
    from steersman.manifests.yaml_documents import YamlDocuments as YamlDocuments
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "steersman.manifests.dumper": ["dump_manifests"],
            "steersman.manifests.loader": ["load_manifests"],
            "steersman.manifests.yaml_documents": ["YamlDocuments"],
        },
    )

__all__ = ["dump_manifests", "load_manifests"]
