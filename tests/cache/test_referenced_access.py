"""Referenced objects of a program that may not read all of the kind, on both servers."""

import pytest

from samples.eventually import eventually
from samples.limited import limited, rule
from steersman import MergePatch, ObjectMeta
from steersman.cache import Cache, KindOptions
from steersman.errors import Forbidden
from steersman.kinds.core_v1 import Secret
from steersman.objects import Key


@pytest.fixture
async def names(client, namespace):
    found = [Key(namespace, f"s{number}") for number in range(3)]
    for key in found:
        await client.create(Secret(metadata=ObjectMeta(name=key.name, namespace=namespace), string_data={"value": "1"}))
    return found


def caching(client, **options):
    return Cache(client, kinds={Secret: KindOptions(referenced=True, **options)})


def value(view):
    return (view.object.data or {}).get("value")


async def test_a_denied_name_stops_no_other(api_server, client, namespace, names, heard):
    allowed = rule("secrets", names=[key.name for key in names[:2]])
    async with limited(api_server, client, namespace, allowed) as operator, caching(operator.client) as cache:
        informer, reader = cache.informer(Secret), cache.reader()
        informer.add_handler(heard)
        informer.names.references.begin(names)
        await eventually(lambda: [informer.has(key) for key in names] == [True, True, False])
        assert (await reader.get(Secret, names[0])).data == {"value": b"1"}
        with pytest.raises(Forbidden):
            await reader.get(Secret, names[2])
        await client.patch(Secret, names[1], MergePatch({"stringData": {"value": "2"}}))
        await heard.until(lambda each: each.key == names[1] and value(each.new) == b"2")
        assert informer.staleness == 0
        await operator.allow(rule("secrets"))
        await heard.until(lambda each: each.key == names[2], within=90)


async def test_rights_by_name_alone_are_enough_beyond_the_bound(api_server, client, namespace, names, heard, caplog):
    """The watch of the namespace is denied, so each name has one of its own."""
    allowed = rule("secrets", names=[key.name for key in names])
    options = {"watches_by_name": 1, "namespaces": (namespace,)}
    async with (
        limited(api_server, client, namespace, allowed) as operator,
        caching(operator.client, **options) as cache,
    ):
        informer = cache.informer(Secret)
        informer.add_handler(heard)
        informer.names.references.begin(names)
        await eventually(lambda: all(informer.has(key) for key in names))
        assert sorted(informer.scopes) == sorted(str(key) for key in names)
        assert caplog.text.count("each of 3 objects that others refer to has a watch of its own") == 1
        for key in names:
            await client.patch(Secret, key, MergePatch({"stringData": {"value": "2"}}))
            await heard.until(lambda each, key=key: each.key == key and value(each.new) == b"2")


async def test_get_alone_reads_from_the_server(api_server, client, namespace, names):
    allowed = rule("secrets", "get")
    async with limited(api_server, client, namespace, allowed) as operator, caching(operator.client) as cache:
        informer, reader = cache.informer(Secret), cache.reader()
        informer.names.references.begin(names)
        assert (await reader.get(Secret, names[0])).data == {"value": b"1"}
        assert informer.outside_reads == 1


@pytest.mark.parametrize("watches", [1, 8])
async def test_changes_of_both_servers_arrive(client, namespace, names, heard, watches):
    async with caching(client, watches_by_name=watches, namespaces=(namespace,)) as cache:
        informer, reader = cache.informer(Secret), cache.reader()
        informer.add_handler(heard)
        absent = Key(namespace, "absent")
        informer.names.references.begin([*names, absent])
        await eventually(lambda: all(informer.has(key) for key in (*names, absent)))
        cache.record_write(await client.patch(Secret, names[0], MergePatch({"stringData": {"value": "2"}})))
        assert (await reader.get(Secret, names[0])).data == {"value": b"2"}
        await heard.until(lambda each: each.key == names[0] and value(each.new) == b"2")
        await client.delete(Secret, names[1])
        await client.create(Secret(metadata=ObjectMeta(name="absent", namespace=namespace)))
        await heard.until(lambda each: each.key == absent and each.type == "appeared")
        await heard.until(lambda each: each.key == names[1] and each.type == "vanished")
        assert await reader.find(Secret, names[1]) is None
        assert informer.outside_reads == 0
