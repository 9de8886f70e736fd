"""Pictures of state machines: mermaid for Markdown, and SVG of our own, both with an object's state on it. Pure.

Guarantees
- A picture is a function of the graph and of what is known about an object: the same in, the same out.
- No text leaves its box, whatever names and messages hold, and nothing in them becomes markup.
- An SVG needs nothing but itself, follows the reader's light or dark scheme, and can be read aloud.
"""

from steersman.patterns.drawing.live import Live, Observed
from steersman.patterns.drawing.mermaid import mermaid
from steersman.patterns.drawing.svg import svg

__all__ = ["Live", "Observed", "mermaid", "svg"]
