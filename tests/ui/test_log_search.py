"""A search in the whole log of a service."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from ui.project import print_lines, shop, until

from steersman.ui import Board
from steersman.ui.log_search import MATCHES_MAX, Excerpt, LogMatches, identity_of

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def stamped(number: int, text: str) -> str:
    return f"{BEGIN + timedelta(milliseconds=number):%Y-%m-%dT%H:%M:%S.%fZ} {text}\n"


async def found(tmp_path: Any, text: str, *lines: str, stderr: str = "") -> LogMatches:
    """Search a text in the log of a service."""
    async with shop(tmp_path) as project:
        await project.process("web")
        async with Board(project.client, project="shop") as board:
            await until(board, "web", lambda row: row.state == "running")
            web = await project.started("web")
            print_lines(web, [stamped(number, line) for number, line in enumerate(lines)])
            if stderr:
                print_lines(web, [stamped(1, stderr)], stream="stderr")
            return await board.search_logs(text, ["web"])


def texts(excerpt: Excerpt) -> list[str]:
    return [line.text for line in excerpt.lines]


async def test_every_line_of_a_long_log_is_searched(tmp_path: Any) -> None:
    """The view keeps 5,000 lines, and the log has 100,000."""
    many = [f"INFO request GET /api/orders/{number} answered 200 in 3 ms" for number in range(100_000)]
    many[7] = "ERROR the Disk is full"
    matches = await found(tmp_path, "disk IS", *many)
    assert matches.count == 1
    (excerpt,) = matches.excerpts
    assert texts(excerpt) == many[2:13]
    assert excerpt.matches == (5,)
    assert excerpt.lines[5].time == BEGIN + timedelta(milliseconds=7)


async def test_near_matches_share_an_excerpt_and_streams_are_in_the_order_of_time(tmp_path: Any) -> None:
    lines = ["error a", "fine", "error b", *["fine"] * 20, "\x1b[31mer\x1b[0mror c"]
    matches = await found(tmp_path, "error", *lines, stderr="error of stderr")
    assert matches.count == 4
    assert [[texts(each)[number] for number in each.matches] for each in matches.excerpts] == [
        ["error a", "error b"],
        ["error of stderr"],
        ["\x1b[31mer\x1b[0mror c"],
    ]
    assert len(matches.excerpts[0].lines) == 8


async def test_the_newest_matches_are_kept_and_all_are_counted(tmp_path: Any) -> None:
    """A text that is in every line must not fill the memory."""
    matches = await found(tmp_path, "é", *(f"é {number}" for number in range(2000)))
    assert matches.count == 2000
    assert texts(matches.excerpts[-1])[-1] == "é 1999"
    assert sum(len(each.matches) for each in matches.excerpts) <= MATCHES_MAX


async def test_lines_that_the_view_has_do_not_count(tmp_path: Any) -> None:
    """Each line is one match, whether it is in memory, on disk or in both."""
    async with shop(tmp_path) as project:
        await project.process("web")
        async with Board(project.client, project="shop") as board:
            await until(board, "web", lambda row: row.state == "running")
            lines = [stamped(0, "error 1"), stamped(0, "error 2"), stamped(1, "error 3")]
            print_lines(await project.started("web"), lines)
            (excerpt,) = (await board.search_logs("error")).excerpts
            matches = await board.search_logs("error", known={identity_of(excerpt.lines[1])})
    assert matches.count == 2
    assert matches.excerpts[0].matches == (0, 2)


@pytest.mark.parametrize("text", ["nowhere", "2026"])
async def test_a_text_that_no_line_has_is_not_found(tmp_path: Any, text: str) -> None:
    """The time before a line is not part of it."""
    assert await found(tmp_path, text, "one", "two") == LogMatches()
