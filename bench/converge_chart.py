"""The converge benchmark as a chart: one panel per measure, one bar per contender, shorter is better.

Plain SVG without scripts or fonts, for light and dark backgrounds: it chooses its colors by ``prefers-color-scheme``
and draws no background itself.
"""

from __future__ import annotations

from html import escape

from bench.report import Column, cell

#: The drawn measures, by the names of their columns.
DRAWN = (
    "wall / bare",
    "CPU per object",
    "writes",
    "writes when started again",
    "change to status, p50",
    "change to status, p99",
)
OURS = "steersman"
WIDTH, MARGIN, GAP = 880, 20, 36
NAMES, VALUES = 176, 52
BAR, STEP = 15, 22
STYLE = """
  text { font: 13px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #1f2328; }
  .title { font-size: 17px; font-weight: 600; }
  .measure { font-weight: 600; }
  .quiet { fill: #59636e; }
  .name { text-anchor: end; }
  .ours { font-weight: 600; }
  rect { fill: #9aa4b0; }
  rect.ours { fill: #0b7a75; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; }
    .quiet { fill: #9198a1; }
    rect { fill: #5d6773; }
    rect.ours { fill: #2fb5ac; }
  }
"""


def chart(columns: tuple[Column, ...], objects: int) -> str:
    """Draw the medians of all rounds."""
    drawn = [column for name in DRAWN for column in columns if column.name == name and any(column.rounds.values())]
    panel = (WIDTH - 2 * MARGIN - GAP) / 2
    body: list[str] = []
    top = 74.0
    for left, right in zip(drawn[::2], [*drawn[1::2], None], strict=False):
        heights = [_panel(body, left, MARGIN, top, panel)]
        if right is not None:
            heights.append(_panel(body, right, MARGIN + panel + GAP, top, panel))
        top += max(heights) + 20
    height = top + 2
    title = f"{objects:,} objects brought to their state: child by server-side apply, and status"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" height="{height:.0f}" role="img" aria-label="{escape(title)}">',
            f"<style>{STYLE}</style>",
            f'<text class="title" x="{MARGIN}" y="30">{escape(title)}</text>',
            f'<text class="quiet" x="{MARGIN}" y="50">median of all rounds; shorter is better</text>',
            *body,
            "</svg>",
            "",
        ]
    )


def _panel(body: list[str], column: Column, left: float, top: float, width: float) -> float:
    """Draw one measure; returns its height."""
    name = f"{column.name}, {column.unit}" if column.unit else column.name
    body.append(f'<text class="measure" x="{left:.0f}" y="{top + 12:.0f}">{escape(name)}</text>')
    values = {each: column.median(each) for each in column.rounds}
    known = {each: value for each, value in values.items() if value is not None}
    longest = max(known.values()) or 1
    room = width - NAMES - VALUES
    for line, (contender, value) in enumerate(known.items()):
        y = top + 24 + line * STEP
        ours = " ours" if contender == OURS else ""
        start = left + NAMES
        # A value of zero is a hairline: the contender took part, and did well.
        length = max(room * value / longest, 1.5)
        body += [
            f'<text class="name{ours}" x="{start - 8:.0f}" y="{y + 12:.0f}">{escape(contender)}</text>',
            f'<rect class="bar{ours}" x="{start:.0f}" y="{y:.0f}" width="{length:.1f}" height="{BAR}" rx="2"/>',
            f'<text class="value{ours}" x="{start + length + 6:.0f}" y="{y + 12:.0f}">{cell(value)}</text>',
        ]
    return 24 + len(known) * STEP
