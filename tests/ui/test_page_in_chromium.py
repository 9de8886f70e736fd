"""The page as a user sees it, in Chromium without a window."""

import pytest
from ui.chromium import chromium
from ui.project import Line, print_line, shop, until

from steersman.ui import Board
from steersman.ui.page import Dashboard

# Chromium's start needs both processors for a while.
pytestmark = pytest.mark.alone("starts a browser")


async def test_a_user_opens_the_page_reads_searches_and_stops_a_service(tmp_path):
    async with shop(tmp_path) as project:
        await project.process("db")
        await project.process("web", depends_on=(("db", "service_started"),))
        await project.port("web", "web", port=8080)
        lines = []
        client = project.client.with_transport(lambda inner: lines.append(Line(inner)) or lines[0])
        async with Board(client, project="shop") as board:
            await until(board, "web", lambda row: row.state == "running")
            web, db = await project.started("web"), await project.started("db")
            print_line(web, "<img src=x onerror=alert(1)> served")
            print_line(db, "disk is nearly full", stream="stderr")
            async with Dashboard(board) as page, chromium(tmp_path / "profile") as tab:
                await tab.show(width=390, height=844)
                await tab.call("Page.navigate", url=page.link())
                await tab.until("document.querySelectorAll('#rows tr').length === 2")
                await tab.until("document.querySelectorAll('.line').length === 2")
                # rows
                assert await tab.run("document.title") == "shop · Steersman"
                assert await tab.run("document.querySelector('.addresses a').href") == "http://localhost:8080/"
                assert await tab.run("document.getElementById('link-words').textContent") == "connected"
                assert await tab.run("document.documentElement.scrollWidth") <= 390
                # output is text, and stderr is marked
                assert await tab.run("document.querySelector('.line img')") is None
                assert "<img src=x" in await tab.run("document.getElementById('lines').textContent")
                assert "nearly full" in await tab.run("document.querySelector('.line.err').textContent")
                # search
                await tab.run("document.dispatchEvent(new KeyboardEvent('keydown', {key: '/', bubbles: true}))")
                assert await tab.run("document.activeElement.id") == "search"
                await tab.call("Input.insertText", text="NEARLY")
                await tab.until("document.querySelectorAll('.line').length === 1")
                assert await tab.run("document.querySelector('mark').textContent") == "nearly"
                # pictures
                await tab.run("document.getElementById('tab-graph').click()")
                assert await tab.run("document.querySelectorAll('#graph .edge.met').length") == 1
                await tab.run("document.getElementById('tab-states').click()")
                assert await tab.run("document.querySelector('#states .box.here + text').textContent") == "Running"
                # an action, and its result
                await tab.run("document.querySelector('button[aria-label=\"stop web\"]').click()")
                await tab.until("document.querySelector('.notice')?.textContent === 'web: stop was requested'")
                await until(board, "web", lambda row: row.state in {"stopping", "stopped"})
                await tab.until("/stop/.test(document.querySelectorAll('.badge')[1].textContent)")
                # the connection
                await lines[0].cut()
                await tab.until("/does not answer/.test(document.getElementById('lost').innerText)")
                assert await tab.run("document.querySelectorAll('#rows tr').length") == 2, "the last state stays"
                lines[0].is_cut = False
                await tab.until("document.getElementById('lost').hidden")
                assert tab.complaints == []
