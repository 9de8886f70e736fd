"""Write the descriptions of metadata for OpenAPI documents: ``descriptions.py MODULES VERSION OUTPUT``.

MODULES is the directory of Go's module cache with ``api@VERSION`` and its siblings (``$(go env GOMODCACHE)/k8s.io``).
The texts are those of ``types_swagger_doc_generated.go``; the name "" is the description of the type itself.
The entry "metadata" has the words about the field ``metadata`` of the kinds that have their own.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from steersman.kinds import index

_TYPES = ("ObjectMeta", "OwnerReference", "ListMeta", "ManagedFieldsEntry", "TypeMeta", "PartialObjectMetadata")
_FIELD = re.compile(r'^\t("(?:\w*)"): +("(?:[^"\\]|\\.)*"),$', re.MULTILINE)


def told(text: str, name: str) -> dict[str, str]:
    """The descriptions of a type and its fields."""
    block = text.partition(f"var map_{name} = ")[2].partition("\n}\n")[0]
    return {json.loads(field): json.loads(said) for field, said in _FIELD.findall(block)}


def swagger(modules: str, version: str, package: str) -> str:
    """The descriptions of a package; empty if it has none."""
    _, _, module, *inner = package.split(".")
    file = Path(modules, f"{module}@{version}", *inner, "types_swagger_doc_generated.go")
    return file.read_text(encoding="utf-8") if file.exists() else ""


def main(modules: str, version: str, output: str) -> None:
    """Read every package, write one file."""
    meta = swagger(modules, version, "io.k8s.apimachinery.pkg.apis.meta.v1")
    found = {name: told(meta, name) for name in _TYPES}
    usual = found["PartialObjectMetadata"]["metadata"]
    own: dict[str, str] = {}
    for package in index.PACKAGES:
        text = swagger(modules, version, package)
        for kind in re.findall(r"^var map_(\w+) = ", text, re.MULTILINE):
            said = told(text, kind).get("metadata", usual)
            if said != usual and not kind.endswith("List"):
                own[f"{package}.{kind}"] = said
    found["metadata"] = own
    Path(output).write_text(json.dumps(found, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
