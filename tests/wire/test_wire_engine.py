"""The engine speaks what we read, and reads what we print."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec
import pytest

from steersman.errors import AlreadyExists, Conflict, Expired, Forbidden, Invalid, NotFound
from steersman.testing import Engine
from steersman.transport import HttpTransport, Response, TlsMaterial
from steersman.wire import (
    AGGREGATED_DISCOVERY,
    APPLY_PATCH,
    JSON,
    PARTIAL_OBJECT_METADATA_LIST,
    CollectionOptions,
    DeleteOptions,
    FrameSplitter,
    HttpRequest,
    ListOptions,
    PatchOptions,
    Preconditions,
    ResourcePath,
    WatchOptions,
    WriteOptions,
    decode_frame,
    describe_request,
    error_from_response,
    group_version_path,
    key_of,
    parse_aggregated_discovery,
    parse_group_list,
    parse_resource_list,
    parse_version,
    parse_warnings,
    raise_for_failure,
    split_list,
)


def check(request: HttpRequest, response: Response, body: bytes) -> None:
    """Raise the error of a failed response."""
    if response.status >= 300:
        raise error_from_response(response.status, response.headers, body, tried=describe_request(request))
    raise_for_failure(body, tried=describe_request(request))


class Api:
    """The least client there can be: a request in, a body out."""

    def __init__(self, transport: HttpTransport, token: str) -> None:
        self.transport = transport
        self._authorization = ("Authorization", f"Bearer {token}")
        self.warnings: list[str] = []

    async def __call__(self, method: str, path: str, query=(), body=None, *, content: str = JSON, accept: str = JSON):
        headers = (self._authorization, ("Accept", accept), *((("Content-Type", content),) if body is not None else ()))
        request = HttpRequest(method, path, query, headers, body)
        async with await self.transport.send(request) as response:
            answer = await response.read()
            self.warnings = parse_warnings(response.headers.getall("Warning", ()))
            check(request, response, answer)
        return answer

    async def watch(self, path: str, options: WatchOptions):
        request = HttpRequest("GET", path, options.to_query(), (self._authorization, ("Accept", JSON)))
        splitter = FrameSplitter()
        async with await self.transport.send(request, stream=True) as response:
            async for chunk in response.chunks(idle_timeout=10):
                for frame in splitter.feed(chunk):
                    yield decode_frame(frame)
        assert splitter.finish() == []


@pytest.fixture
async def api(engine: Engine) -> AsyncIterator[Api]:
    async with HttpTransport(engine.url, tls=TlsMaterial(ca_file=str(engine.ca_file))) as transport:
        yield Api(transport, engine.admin_token)


def config_map(name: str, **data: str) -> bytes:
    return msgspec.json.encode(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data or None}
    )


async def test_both_forms_of_discovery_say_the_same(api):
    """Aggregated and plain documents come from different code of the server and must agree in ours."""
    whole = parse_aggregated_discovery(
        await api("GET", "/api", accept=AGGREGATED_DISCOVERY), await api("GET", "/apis", accept=AGGREGATED_DISCOVERY)
    )
    groups = parse_group_list(await api("GET", "/api"), await api("GET", "/apis"))
    plain = [
        resource
        for version in groups.versions
        for resource in parse_resource_list(await api("GET", group_version_path(version.group, version.version)))
    ]
    assert whole.failures == {}
    assert whole.preferred_versions == groups.preferred_versions
    order = {resource.gvr: resource for resource in plain}
    assert {resource.gvr: resource for resource in whole.resources} == order
    assert len(plain) > 50
    assert parse_version(await api("GET", "/version")).at_least(1, 30)


async def test_failures_of_the_engine_are_distinguished(api, namespace):
    path = ResourcePath("", "v1", "configmaps", namespace)
    await api("POST", path.path, WriteOptions(field_manager="one").to_query(), config_map("a", x="1"))
    with pytest.raises(AlreadyExists):
        await api("POST", path.path, (), config_map("a"))
    with pytest.raises(Invalid) as invalid:
        await api("POST", path.path, (), config_map("A_", **{"x y": "1"}))
    assert [cause.field for cause in invalid.value.causes] == ["metadata.name", "data[x y]"]
    with pytest.raises(NotFound) as missing:
        await api("GET", f"{path.path}/nothing")
    assert not missing.value.is_unknown_path
    with pytest.raises(NotFound) as unknown:
        await api("GET", "/apis/nope.example.com/v1/things")
    assert unknown.value.is_unknown_path
    stale = b'{"metadata":{"name":"a","resourceVersion":"1"}}'
    with pytest.raises(Conflict, match="retry_on_conflict"):
        await api("PUT", f"{path.path}/a", WriteOptions().to_query(), stale)
    with pytest.raises(Conflict) as conflict:
        await api(
            "PATCH",
            f"{path.path}/a",
            PatchOptions(field_manager="two").to_query(),
            config_map("a", x="2"),
            content=APPLY_PATCH,
        )
    assert conflict.value.field_conflicts == (("one", ".data.x"),)
    await api(
        "PATCH",
        f"{path.path}/a",
        PatchOptions(field_manager="two", force=True).to_query(),
        config_map("a", x="2"),
        content=APPLY_PATCH,
    )


async def test_a_forbidden_request_names_the_verb(engine, namespace):
    async with HttpTransport(engine.url, tls=TlsMaterial(ca_file=str(engine.ca_file))) as transport:
        request = HttpRequest(
            "GET",
            f"/api/v1/namespaces/{namespace}/secrets/a",
            headers=(
                ("Authorization", f"Bearer {engine.admin_token}"),
                ("Impersonate-User", "nobody"),
            ),
        )
        async with await transport.send(request) as response:
            body = await response.read()
            with pytest.raises(Forbidden, match="cannot get resource"):
                check(request, response, body)


async def test_options_are_understood(api, namespace):
    path = ResourcePath("", "v1", "configmaps", namespace).path
    dry = WriteOptions(dry_run=True, field_validation="Warn").to_query()
    await api("POST", path, dry, b'{"metadata":{"name":"a"},"dat":{}}')
    assert api.warnings == ['unknown field "dat"']
    with pytest.raises(NotFound):
        await api("GET", f"{path}/a")
    created = msgspec.json.decode(await api("POST", path, (), config_map("a")))
    wrong = DeleteOptions(preconditions=Preconditions(uid="another")).to_body()
    with pytest.raises(Conflict):
        await api("DELETE", f"{path}/a", (), wrong)
    right = DeleteOptions(
        preconditions=Preconditions(uid=created["metadata"]["uid"]), propagation_policy="Foreground", dry_run=True
    )
    await api("DELETE", f"{path}/a", (), right.to_body())
    await api("GET", f"{path}/a")
    await api("DELETE", path, CollectionOptions(field_selector="metadata.name=a").to_query())
    with pytest.raises(NotFound):
        await api("GET", f"{path}/a")


async def test_lists_come_in_pages_and_in_other_forms(api, namespace):
    path = ResourcePath("", "v1", "configmaps", namespace).path
    for name in ("a", "b", "c"):
        await api("POST", path, (), config_map(name))
    options = ListOptions(limit=2)
    first = split_list(await api("GET", path, options.to_query()))
    assert [key_of(item).name for item in first.items] == ["a", "b"]
    assert first.remaining_item_count == 1
    rest = split_list(await api("GET", path, options.next_page(first.continue_).to_query()))
    assert [key_of(item) for item in rest.items] == [(namespace, "c")]
    assert (rest.kind, rest.api_version) == ("ConfigMapList", "v1")
    assert rest.resource_version == first.resource_version
    partial = split_list(await api("GET", path, accept=PARTIAL_OBJECT_METADATA_LIST))
    assert (partial.kind, len(partial.items)) == ("PartialObjectMetadataList", 3)


async def test_a_watch_tells_what_happens(api, namespace):
    """Large objects, bookmarks and the end of the stream included."""
    path = ResourcePath("", "v1", "configmaps", namespace).path
    await api("POST", path, (), config_map("a", x="y" * 900_000))
    options = WatchOptions(
        allow_bookmarks=True, send_initial_events=True, resource_version_match="NotOlderThan", timeout_seconds=3
    )
    seen = []
    async for frame in api.watch(path, options):
        seen.append((frame.type, key_of(frame.object).name, len(frame.object) > 900_000))
        if frame.type == "BOOKMARK" and len(seen) == 2:
            await api("POST", path, (), config_map("b"))
            await api("DELETE", f"{path}/b")
        if seen[-1][:2] == ("DELETED", "b"):
            break
    assert [event for event in seen if event[0] != "BOOKMARK"] == [
        ("ADDED", "a", True),
        ("ADDED", "b", False),
        ("DELETED", "b", False),
    ]


async def test_a_forgotten_version_is_expired(api, engine, namespace):
    """Events are the one kind that the API server does not cache: what etcd has forgotten is gone."""
    await engine.compact()
    path = ResourcePath("", "v1", "events", namespace).path
    with pytest.raises(Expired, match="List again"):
        await api("GET", path, ListOptions(resource_version="1", resource_version_match="Exact").to_query())
