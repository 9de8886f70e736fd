"""A watch that is lost, or open and silent, does not look healthy. In virtual time."""

import asyncio
import logging

import pytest
from cache.test_bad_servers import bookmark, config_map, frame, is_initial, is_watch, names, page, run, saying, status

from steersman.debug import STALE_AFTER
from steersman.manager.builtin_checks import NotYet, check_caches


class Rights:
    """A server that ends every watch, and denies the next, once the right to read is lost."""

    def __init__(self):
        self.held = True

    def __call__(self, query):
        if not self.held:
            return 403, status(403, "Forbidden")
        if is_initial(query):
            return saying(bookmark(5, end=True), *self._until_lost(), then="end")
        if is_watch(query):
            return saying(frame("ADDED", config_map("late", 7)), 40, bookmark(8), 40, bookmark(9), 40, then="end")
        return 200, page(6)

    def _until_lost(self):
        return (30, bookmark(5), 30)


def test_readiness_shows_a_lost_right_and_its_return(caplog):
    caplog.set_level(logging.INFO, "steersman.cache")
    rights = Rights()

    async def scenario(informer):
        await informer.wait_synced()
        await asyncio.sleep(50)
        # quiet, and healthy
        assert informer.staleness == 0
        assert check_caches([informer]) == ""
        rights.held = False
        await asyncio.sleep(10 + 30)
        assert 29 <= informer.staleness <= 31
        assert "v1 ConfigMap may have missed changes for 30 s: list ConfigMap" in check_caches([informer])
        await asyncio.sleep(STALE_AFTER - 20)
        with pytest.raises(NotYet, match="v1 ConfigMap may have missed changes for 2 min"):
            check_caches([informer])
        rights.held = True
        await informer.wait_reached("7")
        assert informer.staleness == 0
        assert check_caches([informer]) == ""

    run(rights, scenario)
    assert [message for message in caplog.messages if "the watch of ConfigMap recovered after" in message]


def test_a_stream_that_stays_open_and_silent_is_stale_and_then_read_again():
    """Whatever is in the way swallows every watch: only lists show what changed."""

    def answer(query):
        if is_initial(query):
            return saying(bookmark(5, end=True)) if not answer.swallows else saying()
        if is_watch(query):
            answer.swallows = True
            return saying()
        return 200, page(9, "missed")

    answer.swallows = False

    async def scenario(informer):
        await informer.wait_synced()
        await asyncio.sleep(99)
        assert informer.staleness == 0
        await asyncio.sleep(50)
        # the second stream is open, and as silent as the first
        assert informer.statistics().scopes[0].phase == "watching"
        assert informer.staleness == 149
        with pytest.raises(NotYet):
            check_caches([informer])
        await informer.wait_reached("9")
        assert names(informer) == ["missed"]
        assert informer.statistics().scopes[0].relists == 1
        return asyncio.get_running_loop().time()

    _, moment = run(answer, scenario)
    assert moment < 600


def test_a_server_without_bookmarks_is_healthy_while_its_version_stands_still():
    def answer(query):
        if is_initial(query):
            return saying(frame("ADDED", config_map("a", 5)), bookmark(5, end=True))
        return saying() if is_watch(query) else (200, page(5, "a"))

    async def scenario(informer):
        for _ in range(10):
            await asyncio.sleep(60)
            assert informer.staleness == 0
        return informer.statistics().scopes[0].relists

    assert run(answer, scenario)[1] == 0
