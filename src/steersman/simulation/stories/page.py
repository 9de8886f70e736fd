"""The stories of a simulation as one HTML page.

Guarantees
- The page loads nothing: its style is inside, and its content security policy allows only that style.
- Everything that comes from a run is escaped.
- It is light or dark as the reader's system is, and fits a phone.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from importlib.resources import files

import msgspec

from steersman._version import __version__
from steersman.debug.page import Html, element
from steersman.simulation.stories.actions import CONTROL_PLANE, OTHER_CLIENT, Action
from steersman.simulation.stories.comparison import StoryLine
from steersman.simulation.stories.story import Story, omission

_STYLES = {"!": "fault", "+": "more", "-": "less", "": ""}
_LEGEND = (("!", "fault"), ("+", "only with the fault"), ("-", "only without it"))


class PageContents(msgspec.Struct, frozen=True, kw_only=True):
    """What a page shows."""

    scenario: str
    #: The run in one line.
    summary: str
    #: What is wrong without any fault, or was never reached.
    remarks: Sequence[str] = ()
    stories: Sequence[Story] = ()
    #: Values that vary between two runs without faults.
    uncompared: Sequence[str] = ()
    #: How often each fault happened at each request.
    coverage: Mapping[str, Mapping[str, int]] = {}
    #: The requests and faults that broke something.
    broken: frozenset[tuple[str, str]] = frozenset()


def story_page(contents: PageContents) -> str:
    """The page, as a whole document."""
    lanes = max((len(_lanes(story)) for story in contents.stories), default=1)
    style = (files("steersman.simulation.stories") / "page.css").read_text(encoding="utf-8") + _grid(lanes)
    policy = f"default-src 'none'; style-src {_hash(style)}; base-uri 'none'; form-action 'none'"
    title = f"Simulation of {contents.scenario}"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", title),
        element("style", Html(style)),
    )
    count = len(contents.stories)
    wrong = bool(contents.stories or contents.remarks)
    words = "1 violation" if count == 1 else f"{count} violations" if count else "wrong" if wrong else "no violation"
    header = element(
        "header",
        element("h1", title),
        element("p", element("span", words, class_="bad" if wrong else "good"), f"; {contents.summary}"),
    )
    remarks = [element("li", remark) for remark in contents.remarks]
    main = element(
        "main",
        element("section", element("h2", "Wrong in all runs"), element("ul", remarks, class_="violations"))
        if remarks
        else None,
        [_section(story) for story in contents.stories],
        _coverage(contents) if contents.coverage else None,
        _uncompared(contents.uncompared) if contents.uncompared else None,
    )
    footer = element("footer", f"Steersman {__version__}")
    body = element("body", header, main, footer)
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _grid(lanes: int) -> str:
    """The columns: a policy that allows no style attributes needs a rule for each place."""
    rules = [f".lanes-{n} {{ grid-template-columns: 6.5em repeat({n}, minmax(0, 1fr)); }}" for n in range(1, lanes + 1)]
    rules += [
        # An arrow begins and ends in the middle of a lane.
        f".lane-{one}-{other} {{ grid-column: {one + 1} / {other + 2}; --inset: {50 / (other - one + 1):.3g}%; }}"
        for one in range(1, lanes + 1)
        for other in range(one, lanes + 1)
    ]
    return f"@media (min-width: 701px) {{ {' '.join(rules)} }}\n"


def _uncompared(values: Sequence[str]) -> Html:
    title = element("h2", "Not compared")
    why = element("p", "These values vary between two runs without faults.")
    return element("section", title, why, element("ul", [element("li", words) for words in values]))


# stories


def _section(story: Story) -> Html:
    lanes = _lanes(story)
    names = element(
        "div", element("span"), [element("span", lane) for lane in lanes], class_=_row_class(lanes, "lanes")
    )
    legend = [element("span", element("b", mark), f"{words}\u2003") for mark, words in _LEGEND]
    rows = [row for line in story.lines for row in _rows(line, lanes)]
    return element(
        "section",
        element("h2", story.title),
        element("ul", [element("li", words) for words in story.violations], class_="violations"),
        element("div", names, rows, element("div", legend, "seconds since the operator first started", class_="legend"))
        if story.lines
        else None,
        class_="story",
    )


def _lanes(story: Story) -> list[str]:
    """The actors, from left to right: users, operators, the control plane, all others."""
    actions = [line.action for line in story.lines if line.action is not None]
    names = dict.fromkeys(name for action in actions for name in (action.actor, action.target) if name)
    return sorted(names, key=lambda name: (_rank(name), name))


def _rank(name: str) -> int:
    if name == "user":
        return 0
    if name.startswith("operator"):
        return 1
    return {CONTROL_PLANE: 2, "server": 2, OTHER_CLIENT: 3}.get(name, 4)


def _row_class(lanes: Sequence[str], *more: str) -> str:
    return " ".join(("row", f"lanes-{len(lanes)}", *filter(None, more)))


def _rows(line: StoryLine, lanes: Sequence[str]) -> Iterator[Html]:
    if line.action is None:
        yield element("div", f"\u2026 {omission(line)}", class_="omitted")
        return
    if line.parts:
        yield element("div", "the runs part here", class_="parting")
    action = line.action
    time = element("span", element("b", line.mark) if line.mark else None, f"{action.time:.3f}", class_="time")
    yield element("div", time, _act(action, lanes), class_=_row_class(lanes, _STYLES[line.mark]))


def _act(action: Action, lanes: Sequence[str]) -> Html:
    actor = lanes.index(action.actor) + 1
    target = lanes.index(action.target) + 1 if action.target else actor
    one, other = (1, len(lanes)) if action.sort == "fault" else sorted((actor, target))
    direction = "alone" if actor == target else "arrow right" if actor < target else "arrow left"
    way = f"{action.actor} \u2192 {action.target}" if action.target else action.actor
    words = [element("span", action.words, class_=action.sort)]
    if action.outcome:
        words.append(element("span", f" \u2192 {action.outcome}", class_="outcome"))
    if action.diff:
        words = [element("details", element("summary", words), element("pre", _diff(action.diff)))]
    return element("div", element("span", way, class_="to"), words, class_=f"act {direction} lane-{one}-{other}")


def _diff(lines: Iterable[str]) -> list[Html]:
    signs = {"+": "plus", "-": "minus"}
    return [element("span", f"{line}\n", class_=signs.get(line[:1])) for line in lines]


# coverage


def _coverage(contents: PageContents) -> Html:
    kinds = sorted({kind for counts in contents.coverage.values() for kind in counts})
    head = element(
        "tr",
        element("th", "request", scope="col"),
        [element("th", kind, scope="col", class_="number") for kind in kinds],
    )
    rows = [
        element("tr", element("td", request), [_count(contents, request, kind, counts.get(kind, 0)) for kind in kinds])
        for request, counts in contents.coverage.items()
    ]
    return element(
        "section",
        element("h2", "Coverage"),
        element("p", "How often each fault happened at each request. Red: it broke something."),
        element("div", element("table", element("thead", head), element("tbody", rows)), class_="scroll"),
    )


def _count(contents: PageContents, request: str, kind: str, count: int) -> Html:
    tone = "broken" if (request, kind) in contents.broken else "" if count else "zero"
    return element("td", count, class_=f"number {tone}".rstrip())
