"""Named checks: what fails, how it is said, and how the answers read."""

import asyncio
import logging
import time  # noqa: TID251 - to block with
from contextlib import suppress
from types import SimpleNamespace

import pytest

from steersman.manager import Checks, Manager
from steersman.manager.builtin_checks import LeadershipCheck, NotYet, add_builtin_checks, check_loop
from steersman.manager.state import State


def fine() -> None:
    pass


async def also_fine() -> bool:
    await asyncio.sleep(0)
    return True


def broken() -> None:
    raise RuntimeError("the disk\nis full")


async def hangs() -> None:
    await asyncio.Event().wait()


async def text(checks: Checks, path: str = "healthz", **options) -> tuple[int, str]:
    answer = await checks.answer(path, **({"verbose": False} | options))
    return answer.status, answer.body.decode()


async def test_all_is_well():
    checks = Checks("health")
    assert await text(checks) == (200, "ok")
    checks.add("disk", fine)
    checks.add("queue", also_fine)
    assert await text(checks) == (200, "ok")
    assert await text(checks, verbose=True) == (200, "[+]disk ok\n[+]queue ok\nhealthz check passed\n")
    assert await text(checks, "healthz/queue") == (200, "ok")


async def test_a_check_that_fails_says_why_and_disturbs_no_other(caplog):
    caplog.set_level(logging.INFO)
    checks = Checks("ready")
    checks.add("ping", fine)
    checks.add("disk", broken)
    checks.add("peer", hangs, timeout=0.05)
    checks.add("quorum", lambda: False)
    expected = (
        "[+]ping ok\n[-]disk failed: the disk is full\n[-]peer failed: it did not answer within 0.05 s\n"
        "[-]quorum failed: it said False\nreadyz check failed\n"
    )
    assert await text(checks, "readyz") == (500, expected)
    assert await text(checks, "readyz", verbose=True) == (500, expected)
    assert await text(checks, "readyz/disk") == (500, "disk failed: the disk is full\n")
    assert await text(checks, "readyz/ping") == (200, "ok")
    assert [(each.name, each.ok) for each in checks.last] == [
        ("ping", True),
        ("disk", False),
        ("peer", False),
        ("quorum", False),
    ]
    # said when it begins, not at every probe
    assert caplog.text.count("ready check disk fails: the disk is full") == 1


async def test_slow_checks_are_asked_at_once():
    checks = Checks("health")
    all_asked = asyncio.Barrier(20)

    async def waits_for_the_others() -> None:
        await all_asked.wait()

    for number in range(20):
        checks.add(f"slow-{number}", waits_for_the_others, timeout=60)
    assert (await text(checks))[0] == 200


async def test_checks_can_be_left_out():
    checks = Checks("health")
    checks.add("disk", broken)
    checks.add("ping", fine)
    assert await text(checks, excluded={"disk"}) == (200, "ok")
    status, words = await text(checks, excluded={"disk", "dsik"}, verbose=True)
    assert status == 200
    assert words.splitlines() == [
        "[+]disk excluded: ok",
        "[+]ping ok",
        "warn: some checks cannot be excluded: no check is named dsik",
        "healthz check passed",
    ]


async def test_a_warning_fails_nothing_and_is_seen():
    checks = Checks("ready")
    checks.add("disk", lambda: "three quarters\nfull")
    checks.add("ping", fine)
    assert await text(checks, "readyz") == (200, "ok")
    assert await text(checks, "readyz", verbose=True) == (
        200,
        "[+]disk ok (three quarters full)\n[+]ping ok\nreadyz check passed\n",
    )
    assert [(each.ok, each.message) for each in checks.last] == [(True, "three quarters full"), (True, "")]


async def test_mistakes_are_named():
    checks = Checks("health")
    checks.add("disk", fine)
    status, words = await text(checks, "healthz/dsik")
    assert status == 404
    assert words == "no check healthz/dsik; did you mean disk? Available: disk\n"
    with pytest.raises(ValueError, match="duplicate health check 'disk'"):
        checks.add("disk", fine)
    with pytest.raises(ValueError, match="becomes part of a path"):
        checks.add("a/b", fine)
    with pytest.raises(TypeError, match="is not callable"):
        checks.add("x", True)
    checks.remove("disk")
    assert checks.names == ()


async def test_a_manager_that_does_not_run_is_healthy_and_not_ready():
    manager = Manager(name="idle")
    assert await text(manager.health) == (200, "ok")
    status, words = await text(manager.ready, "readyz")
    assert status == 500
    assert "[-]caches failed: not started yet" in words
    assert manager.statistics().phase == "starting"


class _Term:
    valid = True


async def test_a_lost_term_whose_work_does_not_end_is_unhealthy(monkeypatch):
    moment = 100.0
    monkeypatch.setattr("steersman.manager.builtin_checks.boottime", lambda: moment)
    check, term = LeadershipCheck(tolerance=20), _Term()
    check()
    check.entered(term)
    check()
    term.valid = False
    check()
    moment += 19
    check()
    moment += 2
    with pytest.raises(NotYet, match="leadership was lost 21 s ago and the controllers have not stopped"):
        check()
    check.entered(None)
    check()


async def test_a_loop_that_is_kept_from_turning_is_unhealthy(monkeypatch):
    monkeypatch.setattr("steersman.manager.builtin_checks.TURN_MAX", 0.05)
    asyncio.get_running_loop().call_soon(time.sleep, 0.1)
    with pytest.raises(NotYet, match=r"one turn of the event loop took \d+\.\d s: something blocks it"):
        await check_loop()
    for _ in range(100):
        with suppress(NotYet):  # on a busy machine a turn may take long by itself
            await check_loop()
            return
    raise AssertionError("the loop stays unhealthy")


async def test_a_replica_with_shards_is_ready_when_the_controllers_of_both_its_terms_work():
    """The coordinator runs some controllers alone: they would be late without a word."""

    def term(name, *, working):
        statistics = SimpleNamespace(sources=[SimpleNamespace(name="queue", started=working)])
        controller = SimpleNamespace(name=name, watched=None, working=working, statistics=lambda *, keys: statistics)
        return SimpleNamespace(controllers=(controller,), behind=lambda name: [])

    state = State(None)
    ready = Checks("ready")
    add_builtin_checks(Checks("health"), ready, state, LeadershipCheck())
    state.shared, state.running = term("sites", working=True), term("queues", working=True)
    assert [each.ok for each in await ready.run({"controllers"})] == [True]
    state.running = term("queues", working=False)
    (result,) = await ready.run({"controllers"})
    assert (result.ok, result.message) == (False, "queues is waiting for queue")
