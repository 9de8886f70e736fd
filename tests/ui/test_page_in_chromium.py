"""The page as a user sees it, in Chromium without a window."""

import asyncio
from contextlib import asynccontextmanager

import pytest
from ui.chromium import chromium
from ui.project import Line, print_line, shop, until

from steersman import aio
from steersman.ui import Board, LogLine, Row
from steersman.ui.page import Dashboard
from steersman.ui.rows import Objects

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


LONG = "a-service-with-a-name-of-many-words"
#: One service in each tone, with the longest texts.
ROWS = (
    Row(name="db", kind="process", state="running", health="healthy", ready=1, addresses=("localhost:5432",)),
    Row(
        name="api",
        kind="process",
        state="running",
        health="unhealthy",
        replicas=2,
        restarts=3,
        addresses=("localhost:8000", "localhost:8443"),
        message=f"503 Service Unavailable: http://127.0.0.1:8000/{'path/' * 30} (health check)",
    ),
    Row(
        name=LONG,
        kind="container",
        state="failed",
        message="api is unhealthy, and it waits for api",
        retried=True,
        depends_on=(("api", "healthy"), ("db", "started")),
    ),
    Row(name="queue", kind="process", state="restarting in 4 s", restarts=7, exit_code=1),
    Row(
        name="later",
        kind="process",
        state="waiting",
        waiting_for="queue to become healthy",
        depends_on=(("queue", "healthy"),),
    ),
    Row(name="cache", kind="container", state="starting", health="unknown"),
    Row(name="migrate", kind="process", state="finished", exit_code=0),
)
#: The texts whose contrast is below 4.5:1, which WCAG AA demands, by the colors that the browser has computed.
FAINT_TEXTS = """(() => {
  const parts = (color) => { const found = color.match(/[\\d.]+/g).map(Number); return found.length < 4 ? [...found, 1] : found; };
  const light = (color) => {
    const [r, g, b] = color.slice(0, 3).map((part) => (part / 255 <= 0.03928 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const color = parts(getComputedStyle(each).backgroundColor);
      if (color[3] === 1) return color;
    }
    return [255, 255, 255];
  };
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [];
  while (walk.nextNode()) {
    const text = walk.currentNode.data.trim(), element = walk.currentNode.parentElement;
    if (!text || !element.getClientRects().length) continue;
    const [low, high] = [light(parts(getComputedStyle(element).color)), light(behind(element))].sort((a, b) => a - b);
    if ((high + 0.05) / (low + 0.05) < 4.5) found.push(`${text}: ${((high + 0.05) / (low + 0.05)).toFixed(2)}`);
  }
  return found;
})()"""
#: The elements that stick out of the window, or of a box that cuts them off.
CUT_OFF = """[...document.querySelectorAll("header *, main *")].filter((each) => {
  const box = each.getBoundingClientRect();
  if (!box.width || each.classList.contains("hidden")) return false;
  return box.right > innerWidth + 1 || (each.scrollWidth > each.clientWidth + 1 && getComputedStyle(each).overflowX !== "visible");
}).map((each) => `${each.tagName} ${each.className} ${each.textContent.slice(0, 30)}`)"""
#: The pairs of a name and a state that cover each other.
OVERLAPS = """[...document.querySelectorAll("#rows tr")].filter((row) => {
  const state = row.querySelector(".states-cell .badge").getBoundingClientRect();
  return [...row.querySelectorAll(".name button, .name small")].some((each) => {
    const box = each.getBoundingClientRect();
    return box.right > state.left && box.left < state.right && box.bottom > state.top && box.top < state.bottom;
  });
}).map((row) => row.textContent)"""


class MadeUpBoard:
    """Services in every state."""

    project, connected, version, rows, objects = "shop", True, 1, ROWS, Objects()

    async def wait_changed(self, since=None):
        await asyncio.Event().wait()

    @asynccontextmanager
    async def log_batches(self, names=(), **options):
        async def batches():
            texts = {"db": "ready", LONG: "x" * 500, "api": "Traceback (most recent call last): " * 5}
            yield [
                LogLine(
                    service=name,
                    replica=name,
                    stream="stderr" if name == "api" else "stdout",
                    text=text,
                    time=aio.utc_now(),
                )
                for name, text in texts.items()
            ]
            await asyncio.Event().wait()

        yield batches()


async def test_an_unhealthy_service_is_visible_and_everything_readable_on_a_desk_and_on_a_phone(tmp_path):
    """Red words on a red ground, a state under a long name, or text beyond the edge hide what is wrong."""
    async with Dashboard(MadeUpBoard()) as page, chromium(tmp_path / "profile") as tab:
        await tab.show(width=1280, height=800)
        await tab.call("Page.navigate", url=page.link())
        await tab.until("document.querySelectorAll('.line').length === 3")
        words = "document.getElementById('summary').textContent"
        assert (
            await tab.run(words) == "1 running, 1 unhealthy, 1 failed, 1 restarting, 1 waiting, 1 starting, 1 finished"
        )
        alarms = "[...document.querySelectorAll('.badge.alarm')].map((each) => each.textContent)"
        assert await tab.run(alarms) == ["unhealthy", "failed"]
        reds = "[...document.querySelectorAll('.bad-text')].map((each) => each.textContent.slice(0, 24))"
        assert await tab.run(reds) == ["503 Service Unavailable:", "api is unhealthy, and it"]
        for width, height in ((1280, 800), (390, 844)):
            for dark in (False, True):
                await tab.show(width=width, height=height, dark=dark)
                await tab.until(
                    f"innerWidth === {width} && matchMedia('(prefers-color-scheme: dark)').matches === {str(dark).lower()}"
                )
                assert await tab.run(FAINT_TEXTS) == []
                assert await tab.run("document.documentElement.scrollWidth") <= width
                assert await tab.run(OVERLAPS) == []
        # The phone shows all of it.
        assert await tab.run(CUT_OFF) == []
        assert "Restarts: " in await tab.run(
            "getComputedStyle(document.querySelector('.restarts'), '::before').content"
        )
        await tab.run("document.getElementById('tab-graph').click()")
        assert await tab.run(
            "document.getElementById('graph').scrollWidth <= document.getElementById('graph').clientWidth"
        )
        assert tab.complaints == []
