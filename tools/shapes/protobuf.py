"""Write the API server's table of protobuf fields: ``protobuf.py MODULES VERSION OUTPUT``.

MODULES is the directory of Go's module cache with ``api@VERSION`` and its siblings (``$(go env GOMODCACHE)/k8s.io``).
It reads the ``generated.proto`` of every package in `steersman.kinds`, and the ``generated.pb.go`` beside it for the
names of fields in error messages, and for the fields that are written only if they are set.

A message becomes one line of words, ordered by field number. A word is the JSON name of a field, or ``+`` and the name
of the message whose fields are inlined. A prefix ``7=`` gives the number, unless it is one more than the last; a suffix
``:Name`` gives the name in Go, unless that is the capitalized JSON name. A ``?`` after the JSON name marks a field that
is written only if it is set; zero values of all others are written, apart from lists and maps.
"""

from __future__ import annotations

import json
import re
import sys
from functools import cache
from pathlib import Path

from steersman.kinds import definitions, index

_COMMENT = re.compile(r"//.*")
_MESSAGE = re.compile(r"^message (\w+) \{(.*?)^\}", re.DOTALL | re.MULTILINE)
_FIELD = re.compile(r"^\s*(?:optional|repeated|map<[^>]+>)\s+(?:([.\w]+)\s+)?(\w+) = (\d+);", re.MULTILINE)
_READER = re.compile(r"^func \(m \*(\w+)\) Unmarshal\(.*?^\}", re.DOTALL | re.MULTILINE)
_WRITER = re.compile(r"^func \(m \*(\w+)\) MarshalToSizedBuffer\(.*?^\}", re.DOTALL | re.MULTILINE)
_IF_SET = re.compile(r"^\tif m\.(\w+) != nil \{", re.MULTILINE)
_CASE = re.compile(r'\n\t\tcase (\d+):\n.*?for field (\w+)"', re.DOTALL)


@cache
def go_names(text: str) -> dict[tuple[str, int], str]:
    """The Go names of the fields of messages, by message and number."""
    return {
        (reader[1], int(number)): name for reader in _READER.finditer(text) for number, name in _CASE.findall(reader[0])
    }


@cache
def optional_fields(text: str) -> set[tuple[str, str]]:
    """The fields that are written only if they are set, by message and name in Go."""
    return {(writer[1], name) for writer in _WRITER.finditer(text) for name in _IF_SET.findall(writer[0])}


def folded(name: str) -> str:
    """A name without the characters that protobuf's names cannot contain."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def json_name(properties: dict[str, object], name: str) -> str | None:
    """The JSON name of a field; None if the fields of its message are inlined."""
    if not properties or name in properties:
        return name
    return next((known for known in properties if folded(known) == folded(name)), None)


def words(package: str, message: str, body: str, source: str) -> str:
    """The line of a message; ``source`` is the Go code that reads and writes it."""
    names, optional = go_names(source), optional_fields(source)
    try:
        properties = definitions.definition(f"{package}.{message}").get("properties") or {}
    except LookupError:
        properties = {}
    said: list[str] = []
    last = 0
    for type_, name, digits in sorted(_FIELD.findall(body), key=lambda field: int(field[2])):
        number = int(digits)
        found = json_name(properties, name)
        usual = "ObjectMeta" if found == "metadata" else found[:1].upper() + found[1:] if found else type_
        go = names.get((message, number), usual)
        word = f"{found or f'+{type_}'}{'?' if (message, go) in optional else ''}"
        said.append(("" if number == last + 1 else f"{number}=") + word + ("" if go == usual else f":{go}"))
        last = number
    return " ".join(said)


def main(modules: str, version: str, output: str) -> None:
    """Read every package, write one file."""
    packages: list[str] = []
    for package in sorted(index.PACKAGES):
        _, _, module, *inner = package.split(".")
        folder = Path(modules, f"{module}@{version}", *inner)
        source = (folder / "generated.pb.go").read_text(encoding="utf-8")
        text = _COMMENT.sub("", (folder / "generated.proto").read_text(encoding="utf-8"))
        messages = {message: words(package, message, body, source) for message, body in _MESSAGE.findall(text)}
        lines = ",\n".join(f'"{message}":{json.dumps(messages[message])}' for message in sorted(messages))
        packages.append(f'"{package}":{{\n{lines}\n}}')
    Path(output).write_text("{\n" + ",\n".join(packages) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
