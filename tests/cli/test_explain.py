"""``steersman explain``: what a running manager knows about one object."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime

import msgspec
import pytest
from msgspec.structs import replace

from samples.site import Site, site
from steersman.aio import Supervisor
from steersman.cli import main
from steersman.controller import Cause, Causes, Context, Done, KeyRecord, Request
from steersman.debug import Explanation, LeaderStatistics, ManagerStatistics, ReadyCondition
from steersman.manager import HttpEndpoints, Manager
from steersman.objects import Key
from steersman.transport import HttpListener, ServerResponse

LONG_AGO = datetime(2026, 3, 1, 3, 0, tzinfo=UTC)
KEY = Key("default", "web")
RECORD = KeyRecord(
    request=Request(KEY),
    reconcile_id="id-7",
    causes=Causes((Cause(what="external", note="the disk is full"), Cause(what="resync")), 9, 3),
    result="error",
    finished=LONG_AGO,
    seconds=0.25,
    waited=0.0,
    writes=1,
    failures=4,
    last_error="ValueError: no image\nsecond line \x1b[2J" + " and on" * 40,
    last_error_at=LONG_AGO,
)
KNOWN = Explanation(
    controller="site",
    kind="web.example.com/v1 Site",
    key=KEY,
    record=RECORD,
    state="delayed",
    next_run=90.0,
    ready=ReadyCondition("False", "ChildrenNotReady", "Deployment web: 0 of 1 replica is ready"),
)
STATISTICS = ManagerStatistics(name="site-operator", version="1", started=LONG_AGO, now=LONG_AGO, phase="running")


async def run(*arguments: str) -> int:
    """The command, in a thread: it has a loop of its own."""
    return await asyncio.to_thread(main, ["explain", *arguments])


class Failing:
    """Fails for one name, and tells when a name was reconciled."""

    def __init__(self) -> None:
        self.seen: dict[str, asyncio.Event] = {"web": asyncio.Event(), "blog": asyncio.Event()}

    async def reconcile(self, ctx: Context, request: Request) -> Done:
        if request.key.name not in self.seen:
            return Done()
        self.seen[request.key.name].set()
        if request.key.name == "blog":
            raise ValueError("the blog has no image")
        return Done()


async def test_a_running_manager_is_asked(engine, namespace, capsys):
    reconciler = Failing()
    async with engine.client(field_manager="tests", namespace=namespace) as client, asyncio.timeout(60):
        await client.install(Site)
        manager = Manager(client, name="sites", endpoints=HttpEndpoints(port=0), namespaces=(namespace,))
        manager.controller(Site, name="site-publisher").run_with(reconciler)
        async with Supervisor() as tasks:
            tasks.start(manager.run(), name="manager")
            for name, seen in reconciler.seen.items():
                await client.create(site(name, namespace))
                await seen.wait()
            where = ("--url", manager.address)
            for kind in ("Site", "sites", "SITE-publisher"):
                assert await run(kind, f"{namespace}/blog", *where) == 0
                said = " ".join(capsys.readouterr().out.split())
                assert f"Site {namespace}/blog controller site-publisher last run just now" in said
                assert "ended failed" in said
                assert "last error ValueError: the blog has no image" in said
            assert await run("site", "wbe", "-n", namespace, *where) == 1
            assert f"has never reconciled {namespace}/wbe, or not recently; did you mean {namespace}/web?" in (
                capsys.readouterr().err
            )
            assert await run("sight-publisher", "web", *where) == 1
            assert "did you mean site-publisher?" in capsys.readouterr().err
            manager.stop()


class Answers:
    """A manager's answers, served as they are encoded."""

    def __init__(self, statistics: ManagerStatistics, *found: Explanation) -> None:
        self.statistics = statistics
        self.found = {str(each.key): each for each in found}

    async def __call__(self, request):
        asked = dict(request.query)
        if request.path == "/debug/statistics.json":
            return ServerResponse(status=200, body=msgspec.json.encode(self.statistics))
        key = Key(asked["namespace"], asked["name"])
        found = self.found.get(str(key)) or replace(KNOWN, key=key, record=None, state="idle", next_run=None)
        return ServerResponse(status=200, body=msgspec.json.encode([found]))


async def test_all_that_is_known_is_said_and_fits_the_terminal(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    async with HttpListener(Answers(STATISTICS, KNOWN)) as listener:
        assert await run("site", "web", "--url", listener.address) == 0  # in namespace default unless one says else
    text = capsys.readouterr().out
    assert text.startswith("Site default/web  controller site\n")
    for line in (
        "  ready      False, ChildrenNotReady: Deployment web: 0 of 1 replica is ready\n",
        " ago, took 250 ms, 1 write\n",
        "  because    external: the disk is full\n             resync\n             and 3 more\n",
        "  ended      failed, 4 failures in a row\n",
        "  last error ValueError: no image\n             second line",
        "  in the log reconcile_id=id-7\n",
        "  next run   in 1 min 30 s\n",
    ):
        assert line in text
    assert re.search(r"^  last run   \d+ d( \d+ h)? ago", text, re.MULTILINE)
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "\x1b" not in text, "what an error quotes does not command the terminal"


async def test_a_cluster_scoped_object_needs_no_namespace(capsys):
    bare = replace(KNOWN, key=Key("", "web"), record=replace(RECORD, request=Request(Key("", "web"))))
    async with HttpListener(Answers(STATISTICS, bare)) as listener:
        assert await run("site", "web", "--url", listener.address) == 0
    assert capsys.readouterr().out.startswith("Site web  controller site\n")


async def test_a_key_that_another_replica_has_names_it(capsys):
    """What ran here last says nothing of the next run."""
    there = replace(KNOWN, elsewhere="sharer-b.1")
    async with HttpListener(Answers(STATISTICS, there)) as listener:
        assert await run("site", "default/web", "--url", listener.address) == 0
    assert re.search(r"next run +in another replica: sharer-b\.1", capsys.readouterr().out)


async def test_a_process_that_stands_by_says_whom_to_ask(capsys):
    leader = LeaderStatistics(lease="default/sites", identity="b", leading=False, holder="a")
    async with HttpListener(Answers(replace(STATISTICS, phase="candidate", leader=leader))) as listener:
        assert await run("site", "web", "--url", listener.address) == 1
    assert "site-operator is on standby; ask the leader: a" in capsys.readouterr().err


async def test_a_manager_that_does_not_answer(capsys):
    assert await run("site", "web", "--url", "http://127.0.0.1:1") == 1
    said = capsys.readouterr().err
    assert "no manager answers at http://127.0.0.1:1." in said
    assert "kubectl port-forward" in said


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (404, "no manager answers at"),
        (200, "does not answer like a manager of this version of Steersman"),
        (403, "returned 403: go away"),
    ],
)
async def test_an_answer_of_another_program(capsys, status, said):
    async def other(request):
        return ServerResponse(status=status, body=b"go away")

    async with HttpListener(other) as listener:
        assert await run("site", "web", "--url", listener.address) == 1
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("site", "a/b", "-n", "c"), "a/b is in namespace a, but -n is c: remove one of them"),
        (("site", "a/b/c"), "is not a key"),
        (("site", "web", "--url", "localhost:8080"), "write one such as http://127.0.0.1:8080"),
    ],
)
def test_a_command_line_that_makes_no_sense(capsys, arguments, said):
    assert main(["explain", *arguments]) == 2
    assert said in capsys.readouterr().err


async def test_a_manager_that_reviews_tokens_is_asked_with_one(tmp_path, capsys):
    """Otherwise token review would end the work of the person on call at a terminal."""
    seen = []

    async def answer(request):
        seen.append(request.header("Authorization"))
        if request.header("Authorization") != "Bearer the-token":
            return ServerResponse(status=401, body=b"no token")
        return ServerResponse(status=200, body=msgspec.json.encode([KNOWN]))

    file = tmp_path / "token"
    file.write_text("the-token\n")
    async with HttpListener(answer) as listener:
        assert await run("site", "web", "--url", listener.address) == 1
        assert "send one with --token-file" in capsys.readouterr().err
        assert await run("site", "web", "--url", listener.address, "--token-file", str(file)) == 0
        assert await run("site", "web", "--url", listener.address, "--token-file", str(tmp_path / "none")) == 1
        assert "cannot read --token-file" in capsys.readouterr().err
    assert seen[0] is None
    assert set(seen[1:]) == {"Bearer the-token"}
