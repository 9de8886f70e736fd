"""Formats, patterns and numbers decided as the server decides them, example by example."""

from __future__ import annotations

import time  # noqa: TID251 - how the time of a computation grows is what is looked at
import timeit
import tracemalloc
from typing import Any

import pytest

from steersman.schemas import validate_tree

GROUP = "examples.example.com"

FORMATS: dict[str, list[str]] = {
    "date-time": [
        "2024-02-29T12:00:00Z", "2024-02-29t12:00:00z", "2024-02-29T23:59:59.5+01:00", "2023-02-29T00:00:00Z",
        "2024-01-01T24:00:00Z", "2024-01-01T00:00:00", "2024-01-01 00:00:00Z", "2024-01-01T00:00:60Z", "0000-01-01T00:00:00Z",
        "2024-01-01T00:00:00x5Z", "2024-01-01T00:00:00Ztrailing", "2024-01-01T00:00:00+0100", "", "t",
    ],
    "date": ["2024-02-29", "2023-02-29", "2024-1-1", "0000-02-29", "2024-13-01", "2024-00-10", "2024-12-32", "2024-12-31\n"],
    "byte": ["", "YQ==", "YQ=", "YWJj", "_-==", "YWJjZA==", "YWJj\n", "=", "YQ==YQ=="],
    "ipv4": ["10.0.0.1", "010.0.0.01", "256.1.1.1", "1.2.3", "::ffff:1.2.3.4", "::1.2.3.04", "1.2.3.4 ", "1.2.3.4.5", "٣.1.1.1", "."],
    "ipv6": ["::1", "fe80::1%eth0", "1.2.3.4", "2001:db8::68", "::1.2.3.4", "::1.2.3.04", "1:2:3:4:5:6:7:8:9", ":", "::", "00001::"],
    "cidr": ["10.0.0.0/8", "010.0.0.0/08", "10.0.0.0/33", "::/0", "::/129", "10.0.0.0", "1.2.3.4/", "/8", "1.2.3.4/-1", "00001::/3"],
    "mac": [
        "00:00:5e:00:53:01", "00-00-5e-00-53-01", "0000.5e00.5301", "00005e005301", "00:00:5e-00:53:01", "00:00:5e:00:53",
        "02:00:5e:10:00:00:00:01", "0", "0000.5e00.5301.0001", "000.5e00.5301", "zz:00:5e:00:53:01", "00:00:5e:00:53:01:02",
    ],
    "uuid": ["123e4567-e89b-12d3-a456-426614174000", "123e4567e89b12d3a456426614174000", "123E4567-E89B-12D3-A456-426614174000", "x"],
    "uuid3": ["123e4567-e89b-32d3-a456-426614174000", "123e4567-e89b-12d3-a456-426614174000"],
    "uuid4": ["123e4567-e89b-42d3-a456-426614174000", "123e4567-e89b-42d3-c456-426614174000"],
    "uuid5": ["123e4567-e89b-52d3-9456-426614174000", "123e4567-e89b-52d3-0456-426614174000"],
    "email": [
        "a@b.c", "a@b", "Bob <bob@x.y>", "Bob Bobson <bob@x.y>", '"Bob, B" <bob@x.y>', "<a@b>", "a@b@c", "@b", "a..b@c", ".a@c", "a.@c",
        '"a b"@c', '""@c', "a@[1.2.3.4]", "a@[::1]", "a@[x]", "a@b (c)", "a@b (c", "(c) a@b", "a", "", "a@b, c@d", "Group: a@b;",
        "Group: ;", "Group: a@b, c@d;", "é@é.é", " a@b ", "a @b", "a@ b", "a@b.", 'x"y@z', "a\\b@c", "Bob <a@b> trailing",
    ],
    "uri": [
        "http://a.b/c?d#e", "/rooted", "rel/ative", "mailto:x@y", "http://[::1]:80", "http://[::1", "http://a:b", "http://a:80:90",
        "x://a:80:90", "ht tp:", "*", ":", "", "http://a b/", "http://a/b c", "http://a/%zz", "http://a/%20", "http://%41/", "http://%C3%A9/",
        "http://user:p@ss@host/", "http://us er@host/", "//host/path", "1http://a", "a:b", "http:", "http://", "http://[fe80::1%25en0]/",
        "http://[1.2.3.4]/", "http://a[b]", "\x7f", "http://a?%zz", "http://é.com/é", "file:///etc", "a+b-c.d://x", "http://a:/", "/%",
    ],
    "hostname": [
        "example.com", "foo-bar", "a-b.example.com", "-a.com", "a-.com", "a", "A1", "a-1", "ünï.example.org", "a.b1", "a.bc", "x" * 63,
        "x" * 64, "a..b", "a.b.", "☃.net", "a_b.com", "1.2.3.4", "", ("a" * 60 + ".") * 5 + "com", "a.b-c", "$.com", "日本",
    ],
    "duration": [
        "1h30m", "5 min", "3 weeks", "1.5h", "-2s", "x", "", "99999999999999999999s", "2d", "1 fortnight", "2 Hours", "1µs", "1ms2", "0",
        "1 D", "10", "h", "1h foo", "5 secs", "1hrs", "+1h", ".5s", "1e3s",
    ],
    "password": ["", "secret"],
    "isbn": ["978-3-8362-2119-1", "3 401 01319 X", "3836221190", "x", "9784873113685"],
    "isbn10": ["3836221195", "1-61729-085-8", "978-3836221191"],
    "isbn13": ["978-3-8362-2119-1", "3836221195", "9784873113680"],
    "creditcard": ["4220855426222389", "4220-8554-2622-2389", "4220855426213389", "card 374953669708156", ""],
    "hexcolor": ["#fff", "CCccCC", "#ff", "fff0", "#FFFFFF", "##fff"],
    "rgbcolor": ["rgb(0,31,255)", "rgb(0, 31 , 255)", "rgb(256,0,0)", "rgb(01,0,0)", "rgba(0,0,0)", "rgb(0,0)"],
    "ssn": ["111-22-3333", "111 22 3333", "111223333", "11-22-33333", "111-223333"],
    "bsonobjectid": ["507f1f77bcf86cd799439011", "507f", "507F1F77BCF86CD799439011", "zzzf1f77bcf86cd799439011"],
    "k8s-short-name": ["a-b", "A", "-a", "a" * 63, "a" * 64, "a.b", "1"],
    "k8s-long-name": ["a.b-c", "a..b", "a" * 253, "a" * 254, "A.b", "a." + "b" * 100],
    "made-up": ["anything", ""],
}  # fmt: skip

PATTERNS = {
    "^a$": ["a", "a\n", "ba", "A"],
    r"^\d+$": ["12", "٣", "1a", ""],
    r"^\w+$": ["a_1", "é", ""],
    r"^\s$": [" ", "\t", "\v", "\u00a0"],
    r"^[\S]+$": ["a", "\v", " "],
    r"\bx\b": ["x", "éxé", "axb", "a x b"],
    "^[[:alpha:][:digit:]_-]+$": ["aZ9_-", "é", "."],
    "(?i)^straße$": ["STRASSE", "straße", "STRAßE"],
    "(?i)^k$": ["K", "k", "\u212a"],
    "(?m)^a$": ["b\na", "b\na\nc", "ba"],
    "(?s)^.$": ["\n", "a", "ab"],
    "^(?i)(abort|warn)?$": ["WARN", "", "warning"],
    "^((?i)sun|mon)day$": ["SUNday", "MONday", "monDAY"],
    "^a(?i)b|c$": ["aBx", "ABx", "C", "xc"],
    "^(?:a(?i)b|c(?-i)d|e)f$": ["aBf", "Cdf", "CDf", "Ef", "ef", "eF"],
    "^.$": ["\n", "é", "😀", "ab"],
    "^(?:a|b){2,3}$": ["ab", "aba", "abab", "a"],
    r"^\x41\x{1F600}?$": ["A", "A😀", "a"],
    "[*+?{}]": ["+", "a", "{"],
    r"^\Aab\z$": ["ab", "ab\n"],
    "^[^a-c]$": ["d", "a", "\n"],
    "^{a}$": ["{a}", "a"],
    "^[]a]$": ["]", "a", "["],
    "^(?P<x>a)(?<y>b)$": ["ab", "a"],
    "": ["", "x"],
    "x*?y+?": ["y", "x", "xxyy"],
}

NUMBERS: list[tuple[dict[str, Any], list[float]]] = [
    (
        {"type": "integer"},
        [0, -1, 1.0, 1.5, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 1e3, 9007199254740993.0, 1.0000000001],
    ),
    ({"type": "integer", "format": "int32"}, [2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 1.0]),
    ({"type": "integer", "minimum": 3, "exclusiveMinimum": True, "maximum": 9}, [3, 4, 9, 10, 3.0, 4.0]),
    ({"type": "integer", "multipleOf": 3}, [0, 3, -3, 4, 6.0, 7.0]),
    ({"type": "number"}, [0, 1.5, 2**63, 1e308, -0.0]),
    ({"type": "number", "format": "float"}, [3.4e38, 3.5e38, 1, 1e-50]),
    ({"type": "number", "minimum": 0.5}, [0, 1, 0.4, 0.5, -1]),
    ({"type": "number", "maximum": -0.5}, [0, -1, -0.4, -0.5, 1]),
    ({"type": "number", "maximum": 1e30}, [0, 1, 1.0, 1e31]),
    ({"type": "number", "multipleOf": 0.1}, [0.3, 0.7, 1.1, 0.35, 1, -0.3, 0.0]),
    ({"type": "number", "multipleOf": 0.01}, [0.29, 0.07, 0.57, 1.15, 4.35, 0.005]),
    ({"type": "number", "multipleOf": 2}, [4, 4.0, 3, 3.0, 1e300, -4.0, 2.000000000001, 6.0000000001]),
    ({"type": "number", "multipleOf": 1.5}, [3, 3.0, 4.5, 4, 1.5]),
    ({"x-kubernetes-int-or-string": True, "minimum": 2, "maxLength": 1}, [1, 2, 2.5]),
]


def listing(name: str, item: dict[str, Any]) -> dict[str, Any]:
    """A CRD whose objects hold a list of examples."""
    plural = name.lower() + "s"
    schema = {"type": "object", "properties": {"examples": {"type": "array", "items": item}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Cluster",
            "names": {"plural": plural, "singular": name.lower(), "kind": name, "listKind": f"{name}List"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


async def compare(server, items: dict[str, dict[str, Any]], examples: dict[str, list[Any]]) -> None:
    """Ask the server about all examples of one kind of schema, one field for each schema, and compare the verdicts."""
    combined = listing("Example" + next(iter(items))[:1].upper(), {"type": "string"})
    version = combined["spec"]["versions"][0]
    version["schema"]["openAPIV3Schema"]["properties"] = {
        field: {"type": "array", "items": item} for field, item in items.items()
    }
    await server.install(combined)
    tree = {
        "apiVersion": f"{GROUP}/v1",
        "kind": combined["spec"]["names"]["kind"],
        "metadata": {"name": "x"},
        **examples,
    }
    causes = await server.verdict(combined, tree)
    theirs = {(cause["field"], cause["reason"], cause["message"]) for cause in causes if cause["field"] != "<nil>"}
    # The server gives no place for a number out of range; its message ends with it.
    placed = {cause["message"].rpartition(" in ")[2] for cause in causes if cause["field"] == "<nil>"}
    found = validate_tree(version["schema"]["openAPIV3Schema"], tree)
    ours = {(problem.path, problem.reason, problem.message) for problem in found}
    assert theirs
    assert theirs <= ours, theirs - ours
    refused = {field for field, _, _ in theirs} | {place.split('"')[-1] for place in placed}
    assert {problem.path for problem in found} - refused == set()


async def test_formats(server):
    """Every enforced format, with what it takes and what it refuses."""
    fields = {f"f{index}": {"type": "string", "format": name} for index, name in enumerate(FORMATS)}
    await compare(server, fields, dict(zip(fields, FORMATS.values(), strict=True)))


async def test_patterns(server):
    """Go's expressions and Python's agree after translation."""
    fields = {f"p{index}": {"type": "string", "pattern": pattern} for index, pattern in enumerate(PATTERNS)}
    await compare(server, fields, dict(zip(fields, PATTERNS.values(), strict=True)))


async def test_numbers(server):
    """Bounds and multiples, also where the server's arithmetic surprises."""
    fields = {f"n{index}": schema for index, (schema, _) in enumerate(NUMBERS)}
    await compare(server, fields, dict(zip(fields, [values for _, values in NUMBERS], strict=True)))


@pytest.mark.parametrize("name", [name for name in FORMATS if name not in {"password", "made-up"}])
def test_every_enforced_format_accepts_and_refuses_something(name):
    """The examples are examples of both."""
    verdicts = {bool(validate_tree({"type": "string", "format": name}, text)) for text in FORMATS[name]}
    assert verdicts == {True, False}


@pytest.mark.parametrize("unit", ["0", "4", "0a", "1 ", " ", "9s", "h1", "1.", "-"])
def test_a_long_text_is_no_longer_work_than_its_length(unit):
    """The server answers no other client while it scans a text: twice the text must not be four times the work."""
    [short, *longer] = [_seconds("duration", unit * (size // len(unit))) for size in (2_000, 20_000)]
    # Ten times the text is a hundred times the work where that is quadratic.
    assert longer[0] < 40 * max(short, 0.002)


@pytest.mark.parametrize("name", FORMATS)
def test_a_long_text_takes_memory_that_grows_with_its_length(name):
    """An expression that replaces or backtracks takes far more than the text, for each piece of it."""
    schema = {"type": "string", "format": name}
    validate_tree(schema, "a")
    for unit in ("1a", "1 ", "00.", "00:", "AAAA", "a."):
        text = unit * (100_000 // len(unit))
        tracemalloc.start()
        try:
            validate_tree(schema, text)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 12 * len(text), unit


def _seconds(name: str, text: str) -> float:
    schema = {"type": "string", "format": name}
    # the time of this thread: another program that takes the core does not count
    return min(timeit.repeat(lambda: validate_tree(schema, text), timer=time.thread_time, number=1, repeat=3))
