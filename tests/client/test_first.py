"""The question whether there is any: one request for one object, whatever the kind has."""

import pytest

from steersman import Kind, ObjectMeta
from steersman.kinds.core_v1 import ConfigMap, Namespace, Secret
from steersman.objects import PartialObjectMetadata, Unstructured

LABELS = {"first": "yes"}


class Counting:
    """A transport that keeps the targets of its requests."""

    def __init__(self, inner):
        self.inner = inner
        self.targets = []

    async def send(self, request, **options):
        self.targets.append(request.target)
        return await self.inner.send(request, **options)

    async def close(self):
        pass


@pytest.fixture
def counted(client):
    """A client, and the requests that it sent."""
    transports = []

    def wrap(inner):
        transports.append(Counting(inner))
        return transports[0]

    return client.with_transport(wrap), transports[0].targets


@pytest.fixture
async def filled(client, namespace):
    for name in ("b", "a", "c"):
        labels = {} if name == "a" else LABELS
        await client.create(ConfigMap(metadata=ObjectMeta(name=name, namespace=namespace, labels=labels)))


@pytest.mark.usefixtures("filled")
async def test_the_first_object_takes_one_request(counted, namespace):
    client, targets = counted
    kind = Kind("v1", "ConfigMap")
    await client.discovery.resources()
    targets.clear()
    chosen = {"namespace": namespace, "labels": LABELS}
    found = [await each.first(ConfigMap, **chosen) for each in (client, client.live, client.metadata)]
    found.append(await client.first(kind, **chosen))
    assert [type(each) for each in found] == [ConfigMap, ConfigMap, PartialObjectMetadata, Unstructured]
    assert [each.key.name for each in found] == ["b"] * 4
    assert (await client.first(ConfigMap, **chosen, fields={"metadata.name": "c"})).key.name == "c"
    assert await client.first(ConfigMap, namespace=namespace, labels="first=no") is None
    assert len(targets) == 6
    assert all("limit=1" in each for each in targets)


@pytest.mark.usefixtures("filled")
async def test_exists_takes_one_request(counted, namespace):
    client, targets = counted
    for reads in (client, client.live, client.metadata):
        targets.clear()
        assert await reads.exists(ConfigMap, namespace=namespace, labels=LABELS) is True
        assert await reads.exists(Secret, namespace=namespace, labels=LABELS) is False
        assert len(targets) == 2
    assert await client.exists(Namespace, fields={"metadata.name": namespace})
