"""The page: who may use it, and what it answers, by raw requests."""

import asyncio
import json
import os
import stat
import sys
from pathlib import Path

import aiohttp
import pytest
from ui.project import print_line, shop, until

from steersman.ui import Board
from steersman.ui.page import AccessRefused, Dashboard, new_link, server as page_server
from steersman.ui.terminal.browser import redirect_file


@pytest.fixture
async def project(tmp_path):
    async with shop(tmp_path) as project:
        await project.process("web", env=[{"name": "DB_PASSWORD", "value": "hunter2hunter2"}])
        yield project


@pytest.fixture
async def board(project):
    async with Board(project.client, project="shop") as board:
        await until(board, "web", lambda row: row.state == "running")
        yield board


@pytest.fixture
async def page(board):
    async with Dashboard(board) as page:
        yield page


class Browser:
    """Sends raw requests, with the headers that a browser sends."""

    def __init__(self, page, session):
        self.page, self.session = page, session
        self.cookie = self.place = ""

    async def send(self, method, path, *, cookie=True, origin=None, host=None, body=None, **headers):
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        if cookie and self.cookie:
            headers["Cookie"] = self.cookie
        if origin:
            headers["Origin"] = origin
        if host:
            headers["Host"] = host
        data = json.dumps(body).encode() if isinstance(body, dict) else body
        return await self.session.request(
            method, self.page.address + path, headers=headers, data=data, allow_redirects=False
        )

    async def enter(self):
        """Exchange a link for a cookie."""
        answer = await self.send("GET", self.page.link().removeprefix(self.page.address))
        assert answer.status == 200
        self.cookie, *attributes = answer.headers["Set-Cookie"].split("; ")
        self.place = dict(each.partition("=")[::2] for each in attributes)["Path"]
        return attributes

    async def post(self, name, body=None, **options):
        options.setdefault("origin", self.page.address)
        return await self.send("POST", self.place + name, body=body, Content_Type="application/json", **options)


@pytest.fixture
async def browser(page):
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session:
        yield Browser(page, session)


# links and cookies


async def test_a_link_is_exchanged_once_for_a_cookie_that_scripts_and_other_sites_cannot_use(browser):
    link = browser.page.link().removeprefix(browser.page.address)
    answer = await browser.send("GET", link)
    cookie = answer.headers["Set-Cookie"]
    assert "; HttpOnly" in cookie
    assert "; SameSite=Strict" in cookie
    assert "; Path=/; " not in cookie, "other ports of this machine would get it"
    second = await browser.send("GET", link)
    assert second.status == 403
    assert "Set-Cookie" not in second.headers
    assert "has already been used" in await second.text()
    assert "steersman page" in await second.text(), "how to get a new one"


async def test_a_link_expires(browser, monkeypatch):
    monkeypatch.setattr("steersman.ui.page.access.LINK_SECONDS", -1.0)
    answer = await browser.send("GET", browser.page.link().removeprefix(browser.page.address))
    assert answer.status == 403


@pytest.mark.parametrize("name", ["", "page.css", "page.js", "graph.js"])
async def test_every_document_needs_the_cookie(browser, name):
    await browser.enter()
    assert (await browser.send("GET", browser.place + name)).status == 200
    assert (await browser.send("GET", browser.place + name, cookie=False)).status == 401
    browser.cookie += "x"
    assert (await browser.send("GET", browser.place + name)).status == 401


@pytest.mark.parametrize("name", ["feed", "action"])
async def test_every_request_for_data_needs_the_cookie(browser, name):
    await browser.enter()
    answer = await browser.post(name, {"action": "stop", "service": "web"}, cookie=False)
    assert answer.status == 401
    assert "steersman page" in await answer.text()


async def test_paths_outside_of_the_page_show_nothing(browser):
    await browser.enter()
    for path in ("/", "/page.js", "/x/page.js", browser.place + "../server.py", browser.place + "%2e%2e/server.py"):
        answer = await browser.send("GET", path)
        assert answer.status in {401, 404}, path


async def test_another_program_of_the_user_gets_a_link_with_the_key(browser):
    link = await new_link(browser.page.address, browser.page.key)
    assert (await browser.send("GET", link.removeprefix(browser.page.address))).status == 200
    with pytest.raises(AccessRefused, match="the page is missing or wrong"):
        await new_link(browser.page.address, "wrong")


# other sites


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "localhost", "127.0.0.1:1", "127.0.0.1.evil.example:{port}"]
)
async def test_a_foreign_host_is_refused_even_with_the_cookie(browser, host):
    await browser.enter()
    port = browser.page.address.rpartition(":")[2]
    answer = await browser.send("GET", browser.place, host=host.format(port=port))
    assert answer.status == 403


async def test_localhost_with_the_right_port_is_served(browser):
    await browser.enter()
    port = browser.page.address.rpartition(":")[2]
    assert (await browser.send("GET", browser.place, host=f"localhost:{port}")).status == 200


@pytest.mark.parametrize("origin", [None, "null", "http://evil.example", "http://127.0.0.1:1", "https://127.0.0.1"])
@pytest.mark.parametrize("name", ["feed", "action"])
async def test_another_origin_is_refused_even_with_the_cookie(browser, name, origin):
    await browser.enter()
    answer = await browser.post(name, {"action": "stop", "service": "web"}, origin=origin)
    assert answer.status == 403
    assert (await browser.send("GET", browser.place + name)).status == 405


async def test_a_document_is_not_loaded_into_another_sites_page(browser):
    await browser.enter()
    answer = await browser.send("GET", browser.place + "page.js", Sec_Fetch_Site="cross-site")
    assert answer.status == 403
    assert "Access-Control-Allow-Origin" not in answer.headers


async def test_the_policy_allows_nothing_from_outside_and_nothing_inline(browser):
    await browser.enter()
    answer = await browser.send("GET", browser.place)
    policy = answer.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert answer.headers["Cache-Control"] == "no-store"
    folder = Path(page_server.__file__).parent / "assets"
    for asset in folder.iterdir():
        text = asset.read_text()
        assert "innerHTML" not in text
        assert "insertAdjacentHTML" not in text
        assert "style=" not in text
        outside = [word for word in text.split() if "://" in word and "www.w3.org/2000/svg" not in word]
        assert all("http://${address}/" in word for word in outside), "no external resource"


# limits


async def test_a_long_body_is_refused(browser):
    await browser.enter()
    answer = await browser.post("action", b"x" * 10_000)
    assert answer.status == 413


async def test_streams_are_bounded_and_free_again_after_their_end(browser, monkeypatch):
    monkeypatch.setattr(page_server, "STREAMS_MAX", 1)
    await browser.enter()
    first = await browser.post("feed")
    assert first.status == 200
    await first.content.readline()
    assert (await browser.post("feed")).status == 429
    first.close()
    async with asyncio.timeout(60):
        while (again := await browser.post("feed")).status != 200:  # noqa: ASYNC110 - the server sees the end later
            await asyncio.sleep(0.02)
    again.close()


# data


async def messages(answer, kind):
    """The messages of a kind."""
    async with asyncio.timeout(60):
        while True:
            message = json.loads(await answer.content.readline())
            if message["type"] == kind:
                yield message


async def test_the_feed_has_rows_machines_and_output_as_data_without_secrets(browser, project):
    await browser.enter()
    web = await project.started("web")
    print_line(web, "<script>alert(1)</script>", stream="stderr")
    answer = await browser.post("feed")
    assert answer.headers["Content-Type"] == "application/x-ndjson"
    hello = json.loads(await answer.content.readline())
    assert hello["project"] == "shop"
    assert "Stopping" in hello["machines"]["Executable"]["Running"]
    state = await anext(messages(answer, "state"))
    (row,) = state["rows"]
    assert (row["name"], row["state"], row["machine"]) == ("web", "running", "Executable")
    assert [each[1] for each in row["states"]] == ["Running"]
    lines = await anext(messages(answer, "lines"))
    assert lines["lines"][0][0] == "web"
    assert lines["lines"][0][2] == 1
    assert lines["lines"][0][4] == "<script>alert(1)</script>"
    assert "hunter2" not in json.dumps([hello, state, lines])
    answer.close()


async def test_an_action_says_what_it_did_and_the_feed_shows_it(browser, board):
    await browser.enter()
    answer = await browser.post("action", {"action": "stop", "service": "web"})
    assert (answer.status, (await answer.json())["message"]) == (200, "web: stop was requested")
    await until(board, "web", lambda row: row.state in {"stopping", "stopped"})
    answer = await browser.post("action", {"action": "stop", "service": "wep"})
    assert answer.status == 409
    assert "did you mean web" in (await answer.json())["message"]
    assert (await browser.post("action", {"action": "explode", "service": "web"})).status == 409
    assert (await browser.post("action", b"{")).status == 400


# links in the arguments of a browser

#: Opens a link as another user, by a socket of IPv4 or of IPv6, and prints the status of the response.
_OTHER_USER = """
import http.client, os, socket, sys, urllib.parse
os.setuid(65534)
url = urllib.parse.urlsplit(sys.argv[1])
client = http.client.HTTPConnection("127.0.0.1", url.port)
client.sock = socket.socket(socket.AF_INET6 if sys.argv[2] == "v6" else socket.AF_INET)
client.sock.connect(("::ffff:127.0.0.1" if sys.argv[2] == "v6" else "127.0.0.1", url.port))
client.request("GET", url.path)
print(client.getresponse().status)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("family", ["v4", "v6"])
async def test_another_user_cannot_use_the_link_of_a_browser(page, browser, family):
    """Every user reads the arguments of a browser in the process list; the link is still good for its owner."""
    link = page.link(own_user=True)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _OTHER_USER, link, family, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    assert out == b"403\n"
    answer = await browser.send("GET", link.removeprefix(page.address))
    assert answer.status == 200
    assert (await browser.send("GET", link.removeprefix(page.address))).status == 403


def test_a_redirect_is_readable_by_its_owner_alone():
    """Where the system does not tell who connects, a browser gets the name of a file instead of the link."""
    with redirect_file("http://127.0.0.1:1/open/secret") as file:
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert "url=http://127.0.0.1:1/open/secret" in file.read_text()
        assert "secret" not in str(file)
    assert not file.exists()
