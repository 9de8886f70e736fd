"""The results of the suite on both servers, side by side: as a table, as JSON, and the specs that differ."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path

from e2e.suite import Result

Results = Mapping[str, Mapping[str, Result]]
_SIG = re.compile(r"\[(sig-[a-z-]+)\]")


def sig_of(spec: str) -> str:
    """The special interest group that owns a spec."""
    found = _SIG.search(spec)
    return found[1] if found is not None else "none"


def table(results: Results) -> str:
    """How many specs passed, by group and server, as Markdown."""
    servers = list(results)
    specs = {spec for by_spec in results.values() for spec in by_spec}
    total = Counter(map(sig_of, specs))
    passed = {name: Counter(sig_of(spec) for spec in passing(results[name])) for name in servers}
    lines = [f"| Group | Specs | {' | '.join(servers)} |", f"|---|---:|{'---:|' * len(servers)}"]
    lines += [
        f"| {sig} | {total[sig]} | {' | '.join(str(passed[name][sig]) for name in servers)} |" for sig in sorted(total)
    ]
    lines.append(f"| all | {len(specs)} | {' | '.join(str(passed[name].total()) for name in servers)} |")
    return "\n".join(lines)


def passing(results: Mapping[str, Result]) -> list[str]:
    """The specs that passed, sorted."""
    return sorted(spec for spec, result in results.items() if result.state == "passed")


def differences(results: Results) -> list[str]:
    """One line for each spec whose state is not the same on both servers."""
    if len(results) < 2:
        return []
    (here, first), (there, second) = results.items()
    lines = []
    for spec in sorted(first.keys() & second.keys()):
        one, other = first[spec], second[spec]
        if one.state != other.state:
            message = summary(other.message if one.state == "passed" else one.message)
            lines.append(f"{here} {one.state}, {there} {other.state}: {spec}\n    {message}")
    return lines


def summary(message: str, length: int = 300) -> str:
    """The beginning of a failure's message, in one line."""
    return " ".join(message.split())[:length]


def write_results(path: Path, results: Results) -> None:
    """Write the results as JSON: of each server, of each spec."""
    trees = {server: {spec: asdict(result) for spec, result in found.items()} for server, found in results.items()}
    path.write_text(json.dumps(trees, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def read_results(paths: Iterable[Path]) -> dict[str, dict[str, Result]]:
    """The results of one or several files; a later file replaces single results of an earlier one."""
    found: dict[str, dict[str, Result]] = {}
    for path in paths:
        for server, results in json.loads(path.read_text(encoding="utf-8")).items():
            found.setdefault(server, {}).update({spec: Result(**each) for spec, each in results.items()})
    return found
