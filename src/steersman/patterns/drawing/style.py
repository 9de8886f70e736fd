"""The styles of pictures, in light and dark. All rules are scoped to the picture, so that it can be part of a page."""

from __future__ import annotations

from typing import Final

#: (selector, property) -> (in light, in dark)
_COLORS: Final = {
    (".page", "fill"): ("#ffffff", "#0d1117"),
    (".page", "stroke"): ("#d8dee4", "#2a313a"),
    ("text", "fill"): ("#1f2328", "#e6edf3"),
    (".quiet", "fill"): ("#59636e", "#9198a1"),
    (".condition", "fill"): ("#0b6e69", "#43c4ba"),
    (".message", "fill"): ("#32383f", "#c9d1d9"),
    (".box", "fill"): ("#f6f8fa", "#161b22"),
    (".box", "stroke"): ("#c3cbd3", "#444c56"),
    (".box.good", "fill"): ("#eafbee", "#0f2418"),
    (".box.good", "stroke"): ("#2da44e", "#2ea043"),
    (".box.busy", "fill"): ("#fff8db", "#272011"),
    (".box.busy", "stroke"): ("#bf8700", "#d29922"),
    (".box.bad", "fill"): ("#ffeeec", "#2d1517"),
    (".box.bad", "stroke"): ("#cf222e", "#f85149"),
    (".box.unknown, .box.idle", "fill"): ("#ffffff", "#0d1117"),
    (".box.unknown, .box.idle", "stroke"): ("#afb8c1", "#59636e"),
    (".said.good", "fill"): ("#116329", "#56d364"),
    (".said.busy", "fill"): ("#7d4e00", "#e3b341"),
    (".said.bad", "fill"): ("#a40e26", "#ff7b72"),
    (".said.unknown, .said.idle", "fill"): ("#59636e", "#9198a1"),
    (".sign.good, .tag.good", "fill"): ("#1f883d", "#2ea043"),
    (".sign.busy, .tag.busy", "fill"): ("#9a6700", "#d29922"),
    (".sign.bad, .tag.bad", "fill"): ("#cf222e", "#f85149"),
    (".mark", "stroke"): ("#ffffff", "#0d1117"),
    (".ring", "stroke"): ("#8c959f", "#6e7681"),
    (".tagged", "fill"): ("#ffffff", "#0d1117"),
    (".rule", "stroke"): ("#8c959f", "#6e7681"),
    (".arrow", "stroke"): ("#818b98", "#7d8590"),
    (".head, .dot", "fill"): ("#818b98", "#7d8590"),
    (".arrow.goto", "stroke"): ("#8250df", "#a371f7"),
    (".head.goto", "fill"): ("#8250df", "#a371f7"),
    (".label.goto", "fill"): ("#6e3fc4", "#b794f6"),
    (".label.passed", "fill"): ("#116329", "#56d364"),
    (".arrow.passed", "stroke"): ("#2da44e", "#2ea043"),
    (".head.passed, .dot.passed", "fill"): ("#2da44e", "#2ea043"),
    (".lane", "stroke"): ("#afb8c1", "#59636e"),
    (".chip.busy", "fill"): ("#fff1b8", "#3a2d0c"),
    (".chip.bad", "fill"): ("#ffdfdc", "#4a1a1c"),
    (".chipped.busy", "fill"): ("#7d4e00", "#e3b341"),
    (".chipped.bad", "fill"): ("#a40e26", "#ff9f98"),
}

_FORMS: Final = """\
%s text { font: 12px "Segoe UI", Roboto, "Helvetica Neue", Helvetica, Arial, "Liberation Sans", sans-serif; }
%s .title { font-size: 20px; font-weight: 700; }
%s .name { font: 700 14px ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace; }
%s .condition, %s .said, %s .strong { font-weight: 700; }
%s .label, %s .small, %s .chipped { font-size: 11px; }
%s .plain { font-weight: 400; }
%s .box { stroke-width: 1.25; }
%s .box.here { stroke-width: 2.5; }
%s .box.unknown, %s .box.idle { stroke-dasharray: 4 3; }
%s .arrow { fill: none; stroke-width: 1.5; }
%s .lane { fill: none; stroke-width: 1.25; stroke-dasharray: 6 5; }
%s .mark { fill: none; stroke-width: 2; stroke-linecap: round; stroke-linejoin: round; }
%s .ring { fill: none; stroke-width: 1.5; }
%s .rule { stroke-width: 1; opacity: 0.45; }
%s .tagged { font-size: 11px; font-weight: 700; }
%s .aside { opacity: 0.6; }
"""


def style(scope: str) -> str:
    """The CSS rules of a picture whose root element has this class."""
    root = f".{scope}"
    light = "".join(_rule(root, selector, name, pair[0]) for (selector, name), pair in _COLORS.items())
    dark = "".join("  " + _rule(root, selector, name, pair[1]) for (selector, name), pair in _COLORS.items())
    return f"{_FORMS.replace('%s', root)}{light}@media (prefers-color-scheme: dark) {{\n{dark}}}\n"


def _rule(root: str, selector: str, name: str, value: str) -> str:
    return f"{', '.join(f'{root} {each}' for each in selector.split(', '))} {{ {name}: {value}; }}\n"
