"""Pictures of state machines, as mermaid for Markdown and as SVG, optionally with an object's status. Pure.

Guarantees
- A picture depends only on the graph and on the observed conditions: equal input gives equal output.
- Text stays inside its box, whatever names and messages contain, and never becomes markup.
- An SVG is self-contained, follows the reader's light or dark scheme, and works with a screen reader.
"""

from steersman.patterns.drawing.mermaid_diagram import mermaid as mermaid
from steersman.patterns.drawing.overlay import Live as Live, Observed as Observed
from steersman.patterns.drawing.svg_diagram import svg as svg
