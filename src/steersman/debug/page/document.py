"""The HTML document around a debug page, and its sections.

Guarantees
- The document is self-contained: it holds its style and script, and its content security policy allows only these.
"""

from __future__ import annotations

from steersman.debug.page.elements import Child, Html, badge, element
from steersman.debug.page.style import POLICY, SCRIPT, STYLE
from steersman.debug.statistics import ManagerStatistics
from steersman.debug.text import stamp


def document(statistics: ManagerStatistics, *, title: str, heading: Html, body: Html) -> str:
    """A whole document around a heading and a body."""
    now = statistics.now
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", title),
        element("style", Html(STYLE)),
    )
    header = element(
        "header",
        heading,
        badge(statistics.phase, "good" if statistics.phase == "running" else "quiet"),
        element(
            "span",
            element("time", stamp(now), datetime=now.isoformat(timespec="seconds")),
            element("span", id="refreshing", class_="script"),
            element("button", "Pause", id="pause", type="button", class_="script"),
            class_="right",
        ),
    )
    footer = element(
        "footer",
        element("span", f"Steersman {statistics.version}"),
        element("a", "statistics.json", href="/debug/statistics.json"),
        element("a", "metrics", href="/metrics"),
        element("a", "readyz", href="/readyz?verbose"),
        element("a", "healthz", href="/healthz?verbose"),
    )
    page = element(
        "body",
        element("div", id="lost", role="status"),
        header,
        element("main", body),
        footer,
        element("script", Html(SCRIPT)),
    )
    return f"<!doctype html>\n{element('html', head, page, lang='en')}\n"


def section(title: str, *children: Child, note: Child = None, id_: str | None = None, extra: Child = None) -> Html:
    """A part of the page with a title."""
    heading = element("h2", title, " ", element("small", note)) if note is not None else element("h2", title)
    return element("section", element("div", heading, extra, class_="title"), *children, id=id_)
