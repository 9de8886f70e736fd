"""Versions that are given a second time, after a backup was restored: the cache does not take them for the old ones."""

import msgspec
import pytest
from faults.workload import until

from samples.controllers import NoServer
from samples.informers import commit
from steersman import Client
from steersman.aio import Supervisor
from steersman.cache import Informer, StoredObject
from steersman.cache.reflector import Put
from steersman.kinds.core_v1 import ConfigMap
from steersman.objects import Key

KEY = Key("default", "web")


def state(version, value):
    tree = {"metadata": {"namespace": "default", "name": "web", "resourceVersion": version}, "data": {"a": value}}
    return StoredObject(key=KEY, resource_version=version, raw=msgspec.json.encode(tree), uid="u")


@pytest.fixture
async def informer():
    """An informer that a test feeds by hand, and what its handler was told."""
    informer, heard = Informer(Client(NoServer()), ConfigMap), []
    registration = informer.add_handler(heard.append)

    async def told(count):
        await until(lambda: len(heard) == count and not registration.pending, f"the handler was told {count} things")
        return heard[-1]

    async with Supervisor() as tasks:
        tasks.start(registration.deliver(), name="handler")
        commit(informer, "", {KEY: state("10", "first")}, "10", new_epoch=False)
        await told(1)
        informer.replica.apply("", (Put(state("12", "ours")),), "12")
        assert (await told(2)).unbroken
        yield informer, told
        tasks.cancel()


async def test_a_version_of_before_the_restore_proves_nothing(informer):
    """Else the write of another would pass for the echo of our own, and its key would be lost."""
    informer, told = informer
    commit(informer, "", {KEY: state("9", "zeroth")}, "9", new_epoch=True)
    assert not (await told(3)).unbroken
    informer.replica.apply("", (Put(state("12", "theirs")),), "12")
    assert not (await told(4)).unbroken
    informer.replica.apply("", (Put(state("13", "theirs")),), "13")
    assert (await told(5)).unbroken


async def test_our_own_writes_were_ahead_of_the_watch(informer):
    informer, told = informer
    informer.overlay.record_write(state("15", "ours"))
    commit(informer, "", {KEY: state("9", "zeroth")}, "9", new_epoch=True)
    await told(3)
    informer.replica.apply("", (Put(state("15", "theirs")),), "15")
    assert not (await told(4)).unbroken


async def test_another_state_of_the_same_version_is_delivered(informer):
    informer, told = informer
    commit(informer, "", {KEY: state("12", "theirs")}, "11", new_epoch=True)
    news = await told(3)
    assert news.type == "changed"
    assert news.new.object.data == {"a": "theirs"}
    commit(informer, "", {KEY: state("12", "theirs")}, "12", new_epoch=False)
    informer.replica.apply("", (Put(state("14", "last")),), "14")
    assert (await told(4)).new.object.data == {"a": "last"}
