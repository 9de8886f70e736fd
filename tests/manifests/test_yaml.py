"""The traps of YAML have a defined answer: kubectl's, or a mistake that names its line."""

from __future__ import annotations

import json
import subprocess
from itertools import pairwise

import pytest

from steersman.errors import ManifestError
from steersman.manifests import YamlDocuments, load_manifests
from steersman.testing.engine.environment import Environment

HEAD = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\n"


def tree(text: str) -> dict:
    (found,) = load_manifests(HEAD + text)
    return {name: value for name, value in found.tree.items() if name not in {"apiVersion", "kind", "metadata"}}


def mistakes(text: str | bytes) -> list[str]:
    return [f"{line}: {reason}" for line, reason in YamlDocuments(text).problems]


@pytest.mark.parametrize(
    "text", ["", "\n", "---\n---\n", "# nothing\n---\n...\n", "null", "~\n---\nnull", b"\xef\xbb\xbf"]
)
def test_empty_documents_are_no_objects(text: str | bytes) -> None:
    assert load_manifests(text) == []


def test_anchors_and_merge_keys_are_expanded_and_not_shared() -> None:
    found = tree(
        "base: &base {a: 1, b: [2]}\nspec: {<<: *base, a: 3}\nmore: {<<: [{c: 1}, {c: 2}]}\nlist: [*base, *base]\n"
    )
    assert found["spec"] == {"a": 3, "b": [2]}
    assert found["more"] == {"c": 1}
    found["list"][0]["b"].append(4)
    assert (found["list"][1]["b"], found["base"]["b"]) == ([2], [2])


def test_a_mistake_in_a_merged_mapping_has_the_line_of_its_key() -> None:
    text = """
apiVersion: v1
kind: Pod
metadata:
  labels: &labels
    port: 80
  name: a
---
apiVersion: v1
kind: Pod
metadata:
  labels: {<<: {port: 80}}
"""
    with pytest.raises(ManifestError) as caught:
        load_manifests(text)
    assert [problem.line for problem in caught.value.problems] == [6, 12]


def test_aliases_that_grow_without_bound_are_a_mistake() -> None:
    names = "abcdefghijklm"
    lines = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]" for before, name in pairwise(names)]
    assert mistakes("\n".join(lines)) == ["6: the aliases expand to too many values; write the values out"]
    long = "a: &a " + "x" * 100_000 + "\nb: [" + "*a, " * 1_000 + "]"
    assert mistakes(long) == ["2: the aliases expand to too many values; write the values out"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a: 1\nb: 2\na: 3", ["3: the key 'a' is already set on line 1"]),
        ("on: 1\n0x10: 2\nnull: 3\n1.0: 4", [
            "1: YAML reads the key 'on' as the key 'true'; quote it",
            "2: YAML reads the key '0x10' as the key '16'; quote it",
            "3: YAML reads the key 'null' as null; quote it",
            "4: YAML reads the key '1.0' as the key '1'; quote it",
        ]),
        ("? [a]\n: b\n", ["1: a key must be a string, not a list or a mapping"]),
        ("a: !Ref b\nc: !!binary aGk=\nd: !!set {}", [
            "1: the tag '!Ref' has no meaning here; remove it",
            "2: the tag 'binary' has no meaning here; remove it",
            "3: the tag 'set' has no meaning here; remove it",
        ]),
        ("a: .inf\nb: .nan", [
            "1: JSON has no such number; quote it if it is a string",
            "2: JSON has no such number; quote it if it is a string",
        ]),
        ("a: *b", ["1: the alias *b has no anchor above it"]),
        ("a: &a [*a]", ["1: the alias *a is inside its own anchor"]),
        ("a: {<<: 3}", ["1: << can merge only mappings"]),
        ("a: " + "[" * 150, ["1: nested deeper than 100 levels"]),
        ("a:\n\tb: 1", ["2: not valid YAML: found character that cannot start any token"]),
        ("ok: 1\n---\na: b: c", ["3: not valid YAML: mapping values are not allowed in this context"]),
        ("a: 1\nb: \x01", ["2: not valid YAML: a control character"]),
        (b"a: 1\nb: \xff", ["2: not UTF-8 text"]),
        ('{"a": "\\ud800"}', ["1: not valid YAML: found invalid Unicode character escape code"]),
    ],
)  # fmt: skip
def test_mistakes_of_a_text(text: str | bytes, found: list[str]) -> None:
    assert mistakes(text) == found


def test_documents_before_an_error_of_syntax_are_checked_too() -> None:
    with pytest.raises(ManifestError) as caught:
        load_manifests("kind: Pod\n---\na: 'open")
    assert [problem.line for problem in caught.value.problems] == [1, 3]


def test_a_text_with_endless_mistakes_is_read_in_part() -> None:
    found = mistakes("\n".join("a: 1" for _ in range(5_000)))
    assert len(found) == 1_001
    assert found[-1].endswith("too many mistakes; the rest of the text is not read")


def test_keys_that_mean_themselves_are_texts() -> None:
    assert tree("8080: a\ntrue: b\n!!str on: c\n'no': d\n=: e\n") == {
        "8080": "a",
        "true": "b",
        "on": "c",
        "no": "d",
        "=": "e",
    }


def test_json_is_read_too() -> None:
    """With tabs, escaped slashes and pairs of escapes, which YAML does not have."""
    text = '{\n\t"apiVersion": "example.com\\/v1",\t"kind": "Widget",\n\t"spec": "\\ud83d\\ude00 \\\\/ \\u00e9 \\n"}'
    (found,) = load_manifests(text)
    assert found.tree == json.loads(text)


def test_values_are_those_of_kubectl() -> None:
    """Plain scalars, merge keys, block scalars and odd keys, as kubectl sends them."""
    words = "y on NO ~ 010 0o17 0x1F 1_000 1e3 .5 08 1:30 2001-01-01 2001-01-01T00:00:00Z = _1 nan '1' 0b11 -0"
    lines = "".join(f"  w{number}: {word}\n" for number, word in enumerate(words.split()))
    text = (
        f"{HEAD}words:\n{lines}base: &base {{a: 1, b: 2}}\nmerged: {{<<: *base, a: 3}}\nkeys: {{8080: a, true: b}}\n"
        "block: |\n  a\n  b\nfolded: >-\n  a\n  b\n"
    )
    program = Environment.read().program("kubectl")
    shown = subprocess.run(
        [program, "annotate", "--local", "-f", "-", "a=b", "-o", "json"],
        input=text,
        text=True,
        capture_output=True,
        check=True,
    )
    theirs = json.loads(shown.stdout)
    del theirs["metadata"]
    (ours,) = load_manifests(text)
    del ours.tree["metadata"]
    assert ours.tree == theirs
