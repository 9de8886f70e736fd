"""``steersman page``: a link to the page of a running application."""

from __future__ import annotations

from steersman.cli.console import show_data
from steersman.cli.failure import Failure
from steersman.cli.up.places import PlaceOptions, refuse_suspended, run_command
from steersman.ui.page import AccessRefused, new_link


def run_page(options: PlaceOptions) -> int:
    """Print a link; returns an exit code."""
    return run_command(lambda: _print_link(options))


async def _print_link(options: PlaceOptions) -> int:
    record = options.running()
    refuse_suspended(record)
    if not record.page:
        raise Failure(f"{record.name} has no page yet: the session is still starting; try again")
    try:
        show_data(f"{await new_link(record.page, record.page_key)}\n")
    except AccessRefused as error:
        raise Failure(str(error)) from error
    return 0
