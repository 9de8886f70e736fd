"""What Go says of regular expressions, and where paths to fields lead."""

import pytest

from steersman.golang.regexp import expression_problem
from steersman.schemas.field_path import PathRefused, resolve_path

TAKEN = [
    "", "a|b", "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", r"\d+\.\w\S", "(?i)x", "(?P<a>x)", "(?<b>y)", "[[:alpha:]]", "[^]a]", "[a-]", r"\p{Greek}\PL",
    r"\p{^latin}", r"\x41\x{1F600}", r"\012", r"\Qa(b\E+", "a{2,3}?", "{", "a{,3}", "x{0}", "(a{100}){10}", r"\z\A\b\B", "(?i-s:x)", "é+", r"[\d\]]",
]  # fmt: skip
REFUSED = {
    "(": "missing closing ): `(`",
    ")": "unexpected ): `)`",
    "a)": "unexpected ): `a)`",
    "[a": "missing closing ]: `[a`",
    "[z-a]": "invalid character class range: `z-a`",
    "[[:foo:]]": "invalid character class range: `[:foo:]`",
    r"\pX": r"invalid character class range: `\pX`",
    r"\p{Foo": r"invalid character class range: `\p{Foo`",
    "*": "missing argument to repetition operator: `*`",
    "a|*?": "missing argument to repetition operator: `*?`",
    "a**": "invalid nested repetition operator: `**`",
    "a{2}{3}": "invalid nested repetition operator: `{2}{3}`",
    "a{3,2}": "invalid repeat count: `{3,2}`",
    "a{1001}": "invalid repeat count: `{1001}`",
    "(a{100}){11}": "invalid repeat count: `{11}`",
    r"\8": r"invalid escape sequence: `\8`",
    r"\x{110000}": r"invalid escape sequence: `\x{110000`",
    r"\C": r"invalid escape sequence: `\C`",
    "\\": "trailing backslash at end of expression: ``",
    "(?=a)": "invalid or unsupported Perl syntax: `(?=`",
    "(?i": "invalid or unsupported Perl syntax: `(?i`",
    "(?P<a b>x)": "invalid named capture: `(?P<a b>`",
    "(?P<a": "invalid named capture: `(?P<a`",
    "(" * 1001 + ")" * 1001: "expression nests too deeply",
}


@pytest.mark.parametrize("expression", TAKEN)
def test_what_go_takes(expression):
    assert expression_problem(expression) == ""


@pytest.mark.parametrize("expression", REFUSED, ids=lambda expression: expression[:20])
def test_what_go_refuses(expression):
    assert expression_problem(expression).startswith(f"error parsing regexp: {REFUSED[expression]}")


SCHEMA = {
    "type": "object",
    "properties": {
        "a": {"type": "string"},
        "b.c": {"type": "object", "additionalProperties": {"type": "integer"}},
        "d'e": {"type": "boolean"},
    },
}


@pytest.mark.parametrize(
    ("path", "kind"),
    [(".a", "string"), ("['b.c'].x", "integer"), (r"['d\'e']", "boolean"), ("['b.c']['x y']", "integer")],
)
def test_a_path_leads_to_a_schema(path, kind):
    found = resolve_path(path, SCHEMA)
    assert found.schema is not None
    assert found.schema["type"] == kind


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("a", "expected [ or . but got: a"),
        (".", "unexpected end of JSON path"),
        (".x", "does not refer to a valid field"),
        (".a.b", "does not refer to a valid field"),
        ("[a]", "expected single quoted string but got a"),
        ("['a'", "unexpected end of JSON path"),
        ("['a'.", "expected ] but got ."),
        (r"['\q']", r"invalid string literal: invalid escape char \q"),
    ],
)
def test_a_path_that_leads_nowhere(path, words):
    with pytest.raises(
        PathRefused, match="^" + words.replace("[", r"\[").replace(".", r"\.").replace("\\q", "\\\\q") + "$"
    ):
        resolve_path(path, SCHEMA)


def test_brackets_can_be_forbidden():
    with pytest.raises(PathRefused, match="array notation is not allowed"):
        resolve_path("['a']", SCHEMA, brackets=False)
