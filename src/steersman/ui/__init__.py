"""The terminal view and the page of a running application.

What the room guarantees
- It is a client like any other: it reads and writes objects and reaches into no other room's state.
- A view is never older than the last event it received, and shows when the connection is lost.
"""

from typing import TYPE_CHECKING

from steersman._lazy_names import lazy_names

# Imported on first use: commands that only print text need no client.
if TYPE_CHECKING:
    from steersman.ui.board import Board as Board
    from steersman.ui.joined_logs import LogLine as LogLine
    from steersman.ui.page import Dashboard as Dashboard, new_link as new_link
    from steersman.ui.refusal import ActionRefused as ActionRefused
    from steersman.ui.rows import CONDITIONS as CONDITIONS, Row as Row, failed_dependency as failed_dependency
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "steersman.ui.board": ["Board"],
            "steersman.ui.joined_logs": ["LogLine"],
            "steersman.ui.page": ["Dashboard", "new_link"],
            "steersman.ui.refusal": ["ActionRefused"],
            "steersman.ui.rows": ["CONDITIONS", "Row", "failed_dependency"],
        },
    )

__all__ = [
    "ActionRefused",
    "Board",
    "Dashboard",
    "new_link",
]
