"""A strict reader of Prometheus' text format: it raises where a scraper would."""

from __future__ import annotations

import re

_SAMPLE = re.compile(
    r"(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)"
    r"(?:\{(?P<labels>(?:[a-zA-Z_][a-zA-Z0-9_]*=\"(?:[^\"\\\n]|\\[\\\"n])*\",?)*)\})? (?P<value>\S+)"
)
_LABEL = re.compile(r"([a-zA-Z_][a-zA-Z0-9_]*)=\"((?:[^\"\\\n]|\\[\\\"n])*)\"")

#: A sample's name and its labels.
Series = tuple[str, frozenset[tuple[str, str]]]


def parse(text: str) -> dict[Series, float]:
    """Every sample; AssertionError where the text is not well-formed."""
    assert text.endswith("\n"), "the last line has no end"
    samples: dict[Series, float] = {}
    types: dict[str, str] = {}
    family = ""
    for line in text.splitlines():
        if line.startswith("# "):
            _, word, name, rest = line.split(" ", 3)
            assert word in {"HELP", "TYPE"}, line
            if word == "TYPE":
                assert name not in types, f"{name} is declared twice"
                types[name], family = rest, name
            continue
        found = _SAMPLE.fullmatch(line)
        assert found, f"no sample: {line!r}"
        name = found["name"]
        allowed = {family} | (
            {f"{family}{end}" for end in ("_bucket", "_sum", "_count")} if _is_histogram(types, family) else set()
        )
        assert name in allowed, f"{name} stands under {family}"
        series = (name, frozenset(_LABEL.findall(found["labels"] or "")))
        assert series not in samples, f"{line!r} is there twice"
        samples[series] = float(found["value"])
    return samples


def _is_histogram(types: dict[str, str], family: str) -> bool:
    return types.get(family) == "histogram"


def value(samples: dict[Series, float], name: str, /, **labels: str) -> float:
    """The sum of all samples of a name that have these labels; KeyError if there is none."""
    wanted = set(labels.items())
    found = [number for (each, has), number in samples.items() if each == name and wanted <= has]
    if not found:
        raise KeyError(f"{name}{labels}")
    return sum(found)
