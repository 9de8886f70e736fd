"""The terminal view of ``steersman up``: services above, logs below, one line of keys.

Guarantees
- The terminal is always restored, and a suspended view redraws itself.
- The output of a service cannot control the terminal; its colors are kept.
- Memory is bounded, however much services print. The goal for the response to a key is 100 ms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from steersman._lazy_names import lazy_names

# Imported on first use: most commands print lines instead.
if TYPE_CHECKING:
    from steersman.ui.terminal.view_loop import (
        TerminalOptions as TerminalOptions,
        has_terminal as has_terminal,
        run_terminal as run_terminal,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "steersman.ui.terminal.view_loop": ["TerminalOptions", "has_terminal", "run_terminal"],
        },
    )
