"""What a server says of itself is not believed blindly: nonsense is a typed error, and leads nowhere else."""

import pytest

from samples.raw_server import always, answer
from steersman import Kind
from steersman.errors import KindNotServed, ProtocolError
from steersman.objects import GroupVersion

MARK = b"OPENSESAME"

DISCOVERY = {
    "nothing": b"",
    "a page": b"<html>" + MARK,
    "null": b"null",
    "another list": b'{"kind":"List","items":[]}',
    "no name": b'{"kind":"APIResourceList","groupVersion":"v1","resources":[{"kind":"Thing"}]}',
    "a name that leads elsewhere": (
        b'{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"..","kind":"Thing","namespaced":true}]}'
    ),
    "a name with blanks": (
        b'{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"a b","kind":"Thing","namespaced":true}]}'
    ),
    "a strange version": b'{"kind":"APIResourceList","groupVersion":"a/b/c","resources":[]}',
    "wrong types": b'{"kind":"APIResourceList","groupVersion":"v1","resources":{"a":1}}',
}


@pytest.mark.parametrize("what", DISCOVERY)
async def test_a_strange_discovery(serve, reach, refused, what):
    """What a server says of itself is not believed blindly."""
    client = await reach(await serve(always(answer(DISCOVERY[what]))))
    await refused((ProtocolError, KindNotServed), client.get(Kind("v1", "Thing"), "a"))
    await refused(ProtocolError, client.discovery.resources())
    await refused(ProtocolError, client.discovery.server_version())
    await refused(ProtocolError, client.discovery.openapi_paths())


async def test_an_openapi_index_that_leads_elsewhere(serve, reach, refused):
    for target in ("http://127.0.0.1:1/", "", None, 5, "openapi v3", "//other"):
        index = answer({"paths": {"api/v1": {"serverRelativeURL": target}}})
        client = await reach(await serve(always(index, answer(b"not JSON"))))
        await refused(ProtocolError, client.discovery.openapi(GroupVersion("", "v1")))
