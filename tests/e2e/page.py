"""Generates the section of docs/like-kubernetes.md about the official e2e suite from the lists of specs.

``PYTHONPATH=tests python -m e2e.page`` writes it into the page; a test fails if the page is outdated.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from e2e.comparison import sig_of
from e2e.known_differences import KNOWN
from e2e.lists import PASSING, read_list

PAGE = Path(__file__).parents[2] / "docs" / "like-kubernetes.md"
BEGIN, END = "<!-- e2e table: generated -->", "<!-- end of e2e table -->"


def table() -> str:
    """The number of specs by group, and how many of them pass on the embedded server, as Markdown."""
    specs = read_list(PASSING)
    total, failing = Counter(map(sig_of, specs)), Counter(map(sig_of, KNOWN))
    lines = ["| Group | kube-apiserver | Embedded server |", "|---|---:|---:|"]
    lines += [f"| {sig} | {total[sig]} | {total[sig] - failing[sig]} |" for sig in sorted(total)]
    lines.append(f"| all | {len(specs)} | {len(specs) - len(KNOWN)} |")
    return "\n".join(lines)


def differences() -> str:
    """The causes of the differences, each with its specs."""
    if not KNOWN:
        return "All of them pass on the embedded server."
    lines = ["These specs fail on the embedded server:", ""]
    for cause in dict.fromkeys(KNOWN.values()):
        specs = sorted(f"`{spec}`" for spec, each in KNOWN.items() if each == cause)
        lines += [f"- {cause[:1].upper()}{cause[1:]}:", *(f"  - {spec}" for spec in specs)]
    return "\n".join(lines)


def written(page: str) -> str:
    """A page with the generated part in its place."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n\n{table()}\n\n{differences()}\n\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
