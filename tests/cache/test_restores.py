"""A server that was restored from a backup: what shows it, and that all kinds of a cache hear of it at once. In virtual time."""

import asyncio
import json
import logging

from cache.test_bad_servers import Server, bookmark, config_map, frame, is_initial, is_watch, names, page, run, saying

from samples.virtual_time import run_virtual
from steersman import Client
from steersman.cache import Cache
from steersman.kinds.core_v1 import ConfigMap, Secret
from steersman.objects import Key, decode
from steersman.transport import InProcessTransport

RESTORED = "the server was restored from a backup"


def expired():
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 410, "reason": "Expired"}
    return frame("ERROR", status | {"message": "too old resource version"})


def test_an_object_that_went_back_shows_a_restore_though_versions_went_on(heard, caplog):
    """``--bump-revision``: the list is newer than anything before, and only its objects are old."""
    first = saying(
        frame("ADDED", config_map("edited", 90)),
        frame("ADDED", config_map("new", 95)),
        bookmark(100, end=True),
        60,
        expired(),
        then="end",
    )
    streams = iter([first, saying(frame("ADDED", config_map("edited", 30)), bookmark(5000, end=True))])

    async def scenario(informer):
        informer.add_handler(heard)
        await informer.wait_synced()
        written = informer.intake.admit(json.dumps(config_map("edited", 6000)).encode())
        informer.overlay.record_write(written)
        await heard.until(lambda each: each.type == "vanished", within=600)
        return names(informer), len(informer.overlay)

    _, (present, own) = run(lambda query: next(streams), scenario)
    assert (present, own) == (["edited"], 0)
    assert caplog.text.count(RESTORED) == 1


def test_an_object_of_ours_that_no_watch_has_shown_is_reported_gone(heard):
    """A CRD came and went between two lists. Without an event, its owner would not create the child again."""
    streams = iter([saying(bookmark(10, end=True), 60, expired(), then="end"), saying(bookmark(5000, end=True))])

    async def scenario(informer):
        informer.add_handler(heard)
        await informer.wait_synced()
        informer.overlay.record_write(informer.intake.admit(json.dumps(config_map("ours", 20)).encode()))
        return (await heard.until(lambda each: each.type == "vanished", within=600))[-1]

    _, gone = run(lambda query: next(streams), scenario)
    assert gone.key == Key("default", "ours")


def test_an_object_that_we_deleted_is_there_again(caplog):
    """The watch never showed the deletion, and the server has lost it."""
    again = frame("ADDED", config_map("kept", 10))
    streams = iter(
        [saying(again, bookmark(10, end=True), 60, expired(), then="end"), saying(again, bookmark(5000, end=True))]
    )

    async def scenario(informer):
        await informer.wait_synced()
        key = Key("default", "kept")
        informer.overlay.record_delete(key, "uid-kept", base=informer.store.get(key))
        assert informer.overlay.visible(key, informer.store.get(key)) is None
        await informer.wait_reached("5000")
        return informer.overlay.visible(key, informer.store.get(key))

    assert run(lambda query: next(streams), scenario)[1] is not None
    assert RESTORED in caplog.text


def test_a_list_that_began_before_our_deletion_is_no_evidence(caplog):
    """It may still show the object; the watch shows the deletion later."""
    again = frame("ADDED", config_map("kept", 10))
    streams = iter(
        [
            saying(again, bookmark(10, end=True), 60, expired(), then="end"),
            saying(10, again, bookmark(20, end=True), 10, frame("DELETED", config_map("kept", 21))),
        ]
    )

    async def scenario(informer):
        await informer.wait_synced()
        await asyncio.sleep(65)  # the second list is under way
        key = Key("default", "kept")
        informer.overlay.record_delete(key, "uid-kept", base=informer.store.get(key))
        await informer.wait_reached("20")
        hidden = informer.overlay.visible(key, informer.store.get(key)) is None
        await informer.wait_reached("21")
        return hidden, names(informer)

    assert run(lambda query: next(streams), scenario)[1] == (True, [])
    assert RESTORED not in caplog.text


class Restored:
    """Serves two kinds. After a minute it is restored, and only the watch of the first kind breaks."""

    def __init__(self):
        self.lists = []

    async def __call__(self, request):
        secrets = "secrets" in request.path
        return await Server(lambda query: self._answer(query, secrets=secrets))(request)

    def _answer(self, query, *, secrets):
        if not is_watch(query):
            return 200, page(20)
        if not is_initial(query):
            return saying()
        self.lists.append("secrets" if secrets else "configmaps")
        if self.lists.count(self.lists[-1]) == 1:
            # The version of the list of Secrets is older than the backup, so nothing about it ever goes back.
            end = bookmark(10, end=True) if secrets else bookmark(100, end=True)
            return saying(
                frame("ADDED", config_map("lost", 9) | {"kind": "Secret" if secrets else "ConfigMap"}),
                end,
                *(() if secrets else (60,)),
                then=None if secrets else "break",
            )
        return saying(5 if secrets else 0, bookmark(20, end=True))


def test_what_one_kind_shows_counts_for_all_kinds(caplog):
    """Else a reconcile would act on owners that no longer exist, until each watch has noticed by itself."""
    server = Restored()

    async def scenario():
        client = Client(InProcessTransport(server), field_manager="tests", namespace="default")
        async with client, Cache(client) as cache:
            reader = cache.reader()
            assert await reader.find(Secret, "lost") is not None
            assert await reader.find(ConfigMap, "lost") is not None
            assert cache.epoch == 0
            await asyncio.sleep(60.5)
            assert cache.epoch == 1
            began = asyncio.get_running_loop().time()
            assert await reader.find(ConfigMap, "lost") is None
            # not the Secret of before, although nothing has happened to its watch
            assert await reader.find(Secret, "lost") is None
            assert asyncio.get_running_loop().time() - began > 3
            await asyncio.sleep(600)
            return cache.epoch

    assert run_virtual(scenario())[0] == 1
    assert sorted(server.lists) == ["configmaps", "configmaps", "secrets", "secrets"]
    assert caplog.text.count(RESTORED) == 1


def test_writes_to_the_restored_server_are_visible_after_an_older_list():
    """Their answers arrive before the list, which was under way: it lacks the one object, and has the other, deleted one."""

    class Listing:
        def __init__(self):
            self.lists = 0

        def __call__(self, query):
            if selected := query.get("fieldSelector"):
                return 200, page(30, *(["mine"] if selected == "metadata.name=mine" else ()))
            if not is_watch(query):
                return 200, page(20)
            if not is_initial(query):
                return saying()
            self.lists += 1
            return (
                saying(bookmark(100, end=True), 60, then="break")
                if self.lists == 1
                else saying(5, frame("ADDED", config_map("theirs", 9)), bookmark(20, end=True))
            )

    async def scenario():
        client = Client(InProcessTransport(Server(Listing())), field_manager="tests", namespace="default")
        async with client, Cache(client) as cache:
            await cache.informer(ConfigMap).wait_synced()
            await asyncio.sleep(62)
            assert cache.epoch == 1
            assert not cache.informer(ConfigMap).settled
            cache.record_write(decode(ConfigMap, json.dumps(config_map("mine", 25)).encode()))
            cache.record_delete(ConfigMap, Key("default", "theirs"), "uid-theirs")
            return [await cache.reader().find(ConfigMap, name) for name in ("mine", "theirs")]

    mine, theirs = run_virtual(scenario())[0]
    assert mine is not None
    assert theirs is None


def test_a_relist_that_shows_a_restore_does_not_answer_a_read(caplog):
    """Many outcomes are unknown, so one list settles them all; a list of another epoch may be older than the writes."""
    written = [f"written-{number}" for number in range(40)]
    added = [frame("ADDED", config_map(name, 25)) for name in written]
    lists = iter(
        [
            saying(bookmark(100, end=True)),
            saying(bookmark(20, end=True)),
            saying(*added, bookmark(30, end=True)),
        ]
    )

    def answer(query):
        if is_initial(query):
            return next(lists)
        return saying() if is_watch(query) else (200, page(20))

    async def scenario():
        client = Client(InProcessTransport(Server(answer)), field_manager="tests", namespace="default")
        async with client, Cache(client) as cache:
            await cache.informer(ConfigMap).wait_synced()
            for name in written:
                cache.record_unknown(ConfigMap, Key("default", name))
            found = await cache.reader().list(ConfigMap)
            return sorted(each.key.name for each in found), cache.informer(ConfigMap).overlay.live_keys()

    assert run_virtual(scenario())[0] == (sorted(written), [])
    assert RESTORED in caplog.text


def test_an_expired_watch_does_not_end_an_outage(caplog):
    """A server accepts the watch and then says that its version is too old: until the next list, the cache is as old as before."""
    caplog.set_level(logging.INFO, "steersman.cache")
    loop_time = asyncio.get_running_loop

    class Outage:
        def __init__(self):
            self.lists = 0

        def __call__(self, query):
            if is_initial(query):
                self.lists += 1
                if self.lists == 1:
                    return saying(bookmark(5, end=True), 30, then="break")
                return saying(10, bookmark(50, end=True))
            if loop_time().time() < 60:
                return 503, b"{}"
            return saying(expired(), then="end") if is_watch(query) else (200, page(50))

    async def scenario(informer):
        await informer.wait_synced()
        async with asyncio.timeout(300):
            while loop_time().time() < 60 or informer.store.watermark() != "50":
                if loop_time().time() > 62:
                    assert informer.staleness > 25
                await asyncio.sleep(0.5)

    run(Outage(), scenario)
    recovered = [message for message in caplog.messages if "recovered after" in message]
    assert recovered
    assert float(recovered[0].partition("recovered after ")[2].split()[0]) > 30
