"""Bodies that are small and would be long computations: refused before, or computed in time that grows with their size."""

import json
import tracemalloc
from time import process_time  # noqa: TID251 - how the time of a computation grows is what is looked at

import pytest
from hostile.protobuf import part

from samples.embedded import Raw
from samples.site import GROUP, Site
from steersman.apiserver import ApiServer
from steersman.apiserver.json_trees import NAME_MAX, VALUES_MAX
from steersman.transport import ServerResponse
from steersman.wire import HttpRequest

MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
SITES = f"/apis/{GROUP}/v1/namespaces/default/sites"
SITE = f'{{"apiVersion":"{GROUP}/v1","kind":"Site","metadata":{{"name":"x"}},"spec":{{"image":"i","settings":@}}}}'
YAML, PROTOBUF = "application/yaml", "application/vnd.kubernetes.protobuf"


async def sent(server, body, content_type="application/json", *, path=MAPS, method="POST"):
    """Status, tree and warnings of the answer to a body."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    reply = await server.handler(HttpRequest(method, path, (), (("Content-Type", content_type),), raw))
    return reply.status, json.loads(reply.body), [value for name, value in reply.headers if name == "Warning"]


async def seconds(server, body, content_type="application/json", *, path=MAPS) -> float:
    begin = process_time()
    await sent(server, body, content_type, path=path)
    return process_time() - begin


TOO_MANY = f"Request entity too large: limit is {VALUES_MAX} values"
TOO_DENSE = "Request entity too large: as a tree it would take more than 30 times its size in memory"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param(b'{"u":[%s1]}' % (b"1," * VALUES_MAX), TOO_MANY, id="numbers"),
        pytest.param(b"[" + b"{}," * VALUES_MAX + b"{}]", TOO_MANY, id="empty objects"),
        pytest.param(b"[%s1]" % (b"[[]]," * 300_000), TOO_DENSE, id="pairs of lists"),
    ],
)
async def test_a_body_with_more_values_than_an_object_can_have_is_refused(server, body, message):
    status, tree, _ = await sent(server, body)
    assert (status, tree["message"]) == (413, message)


@pytest.mark.parametrize(
    "item", [pytest.param("1", id="numbers"), pytest.param("[]", id="lists"), pytest.param("{}", id="objects")]
)
async def test_an_object_of_as_many_values_as_can_be_stored_is_accepted(item):
    """kube-apiserver stores it: a scenario of tests/conformance shows it with 200,000 values."""
    async with ApiServer(resources=[Site]) as server:
        values = ",".join([item] * (1_572_000 // (len(item) + 1)))
        status, tree, _ = await sent(server, SITE.replace("@", f'{{"s":[{values}]}}').encode(), path=SITES)
        assert status == 201
        assert len(tree["spec"]["settings"]["s"]) == values.count(",") + 1


async def test_a_built_in_object_counts_as_in_etcd(server):
    """kube-apiserver stores it as protobuf: names of fields and escapes in JSON do not count."""
    lines = {"metadata": {"name": "x"}, "data": {"a": "\n" * 1_000_000}}
    assert (await sent(server, lines))[0] == 201

    def pod(count: int) -> dict[str, object]:
        containers = [{"name": f"c{number}", "image": "i", "terminationMessagePath": "/"} for number in range(count)]
        return {"metadata": {"name": "x"}, "spec": {"containers": containers}}

    status, tree, _ = await sent(server, pod(45_000), path=PODS)
    assert (status, tree["message"]) == (413, "etcdserver: request is too large")
    status, tree, _ = await sent(server, pod(30_000), path=PODS)
    assert (status, len(tree["spec"]["containers"])) == (201, 30_000)


@pytest.mark.parametrize(
    "metadata",
    [
        '"ownerReferences":[' + ",".join(["{}"] * 300_000) + "]",
        '"managedFields":[' + ",".join(["null"] * 250_000) + "]",
    ],
    ids=["owners", "managed fields"],
)
async def test_items_that_would_be_too_large_with_all_fields_are_refused_before_they_are_filled_in(server, metadata):
    body = f'{{"metadata":{{"name":"x",{metadata}}}}}'.encode()
    request = HttpRequest("POST", MAPS, (), (("Content-Type", "application/json"),), body)
    # What is loaded on first use is not counted.
    await sent(server, {"metadata": {"name": "first", "ownerReferences": [{}]}, "unknown": 1})
    answer, ratio = await memory(server, request)
    assert answer.status == 413
    assert ratio < 30, f"{ratio:.0f} times the body"


async def test_commas_and_brackets_in_texts_are_no_values(server):
    text = '"[{,' * 100_000 + "\\"
    status, tree, _ = await sent(server, {"metadata": {"name": "x"}, "data": {"a": text, '\\"': "no key"}})
    assert status == 422, "only the key is wrong"
    assert [each["field"] for each in tree["details"]["causes"]] == ['data[\\"]']
    assert (await sent(server, {"metadata": {"name": "x"}, "data": {"a": text}}))[0] == 201


async def test_a_patch_with_more_values_than_an_object_can_have_is_refused(server):
    await sent(server, {"metadata": {"name": "x"}})
    body = b'{"data":{"a":[%s1]}}' % (b"1," * VALUES_MAX)
    for form in ("merge-patch", "strategic-merge-patch"):
        status, tree, _ = await sent(server, body, f"application/{form}+json", path=f"{MAPS}/x", method="PATCH")
        assert (status, tree["reason"]) == (413, "RequestEntityTooLarge")


async def test_merging_in_yaml_takes_time_that_grows_with_the_text(server):
    def body(size: int) -> bytes:
        keys = ",".join(f"k{n}: 1" for n in range(size))
        return f"a: &a {{{keys}}}\nb: &b {{x: 1}}\nc:\n  <<: [*a,{','.join(['*b'] * size)}]\n".encode()

    await seconds(server, body(100), YAML)
    small, large = [await seconds(server, body(size), YAML) for size in (2_000, 16_000)]
    assert large < 30 * small, "eight times the text: with the square it is sixty times the time"


async def test_an_alias_in_yaml_does_not_repeat_a_long_text(server):
    body = b"a: &a " + b"x" * 500_000 + b"\ndata: [" + b",".join([b"*a"] * 50) + b"]\n"
    status, tree, _ = await sent(server, body, YAML)
    assert status == 400
    assert "excessive aliasing" in tree["message"]


async def test_aliases_make_no_long_computation_of_a_short_yaml_text(server):
    keys = ",".join(f"k{n}: 1" for n in range(200))
    body = f"a: &a {{{keys}}}\nb:\n".encode() + b"  - *a\n" * 300
    status, tree, _ = await sent(server, body, YAML)
    assert status == 400
    assert "excessive aliasing" in tree["message"]


async def test_what_is_merged_in_yaml_counts_in_order(server):
    body = b"a: &a {u: '1', v: '1'}\nb: &b {u: '2', w: '2'}\nmetadata: {name: x}\ndata: {<<: [*a, *b], v: '3'}\n"
    status, tree, _ = await sent(server, body, YAML)
    assert (status, tree["data"]) == (201, {"u": "1", "v": "3", "w": "2"})


async def test_a_protobuf_body_with_more_fields_than_an_object_needs_is_refused(server):
    envelope = b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap"
    for field in (b"\x0a\x00", b"\x78\x01", b"\x12\x00"):
        message = field * (VALUES_MAX + 1)
        length = bytes([len(message) & 127 | 128, len(message) >> 7 & 127 | 128, len(message) >> 14])
        status, tree, _ = await sent(server, envelope + b"\x12" + length + message, PROTOBUF)
        assert status == 400
        assert f"more than {VALUES_MAX} fields" in tree["message"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        pytest.param(b"\x12\x00" * 600_000, TOO_DENSE, id="empty containers"),
        pytest.param(
            part(2, part(1, b"container-1") + part(2, b"i")) * 100_000,
            "etcdserver: request is too large",
            id="small containers",
        ),
    ],
)
async def test_a_protobuf_body_of_many_small_messages_takes_bounded_memory(server, fields, message):
    def pod(containers: bytes) -> bytes:
        spec = part(1, part(1, b"x")) + part(2, containers)
        return b"k8s\0" + part(1, part(1, b"v1") + part(2, b"Pod")) + part(2, spec)

    # What is loaded on first use is not counted.
    await sent(server, pod(fields[:2]), PROTOBUF, path=PODS)
    answer, ratio = await memory(server, HttpRequest("POST", PODS, (), (("Content-Type", PROTOBUF),), pod(fields)))
    assert (answer.status, json.loads(answer.body)["message"]) == (413, message)
    assert ratio < 35, f"{ratio:.0f} times the body"


async def test_a_document_in_a_protobuf_body_counts_as_other_values(server):
    document = b'{"a":[%s]}' % b",".join([b"[" * 20 + b"]" * 20] * 250)
    entry = part(17, part(1, b"m") + part(7, part(1, document)))
    message = part(1, part(1, b"x") + entry * 60)
    body = b"k8s\0" + part(1, part(1, b"v1") + part(2, b"ConfigMap")) + part(2, message)
    status, tree, _ = await sent(server, body, PROTOBUF)
    assert (status, tree["message"]) == (413, TOO_DENSE)


async def test_a_field_with_a_very_long_name_is_refused(server):
    status, tree, _ = await sent(server, {"metadata": {"name": "x"}, "a": {"k" * (NAME_MAX + 1): {"u": 1}}})
    assert (status, tree["message"]) == (
        413,
        f"Request entity too large: limit of a field's name is {NAME_MAX} characters",
    )


async def test_of_very_many_unknown_fields_the_first_are_reported(server):
    """Each of them names the whole path, which is long."""
    unknown = {f"u{n}": 1 for n in range(3_000)}
    body = {"metadata": {"name": "x"}, "data": {}, "unknown": 1} | unknown
    assert (await sent(server, body))[0] == 201
    begin = process_time()
    deep = {
        "metadata": {"name": "x"},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": {"limits": {"k" * 60_000: "1"}}} | unknown]},
    }
    warnings = (await sent(server, deep, path=PODS))[2]
    assert process_time() - begin < 5
    assert len("".join(warnings)) < 10_000


async def test_of_very_many_problems_the_first_are_reported(server):
    labels = {f"k{n}!": "v!" for n in range(50_000)}
    status, tree, _ = await sent(server, {"metadata": {"name": "x", "labels": labels}})
    assert status == 422
    assert len(tree["details"]["causes"]) <= 1_001
    assert tree["details"]["causes"][0]["message"].startswith('Invalid value: "k0!"')


async def test_many_controllers_are_not_each_told_of_all_others(server):
    owners = [
        {"apiVersion": "v1", "kind": "Pod", "name": f"p{n}", "uid": str(n), "controller": True} for n in range(4_000)
    ]
    status, tree, _ = await sent(server, {"metadata": {"name": "x", "ownerReferences": owners}})
    assert status == 422
    assert len(json.dumps(tree)) < 4_000_000


async def test_items_that_have_the_same_fields_share_what_is_known_of_them():
    """The managed fields of many small items take less memory than the items, and so does the search for duplicates."""
    async with ApiServer() as server:
        raw = Raw(server.handler)
        item = {"type": "object", "required": ["k"], "properties": {"k": {"type": "integer"}}}
        items = {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
            "items": item,
        }
        schema = {
            "type": "object",
            "properties": {"spec": {"type": "object", "properties": {"l": items}}},
        }
        version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
        names = {"plural": "denses", "kind": "Dense"}
        made = {
            "metadata": {"name": "denses.work.io"},
            "spec": {"group": "work.io", "scope": "Cluster", "names": names, "versions": [version]},
        }
        assert (await raw.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", made)).code == 201
        body = {"apiVersion": "work.io/v1", "kind": "Dense", "metadata": {"name": "x"}}
        body["spec"] = {"l": [{"k": number} for number in range(10_000)]}
        text = json.dumps(body, separators=(",", ":")).encode()
        request = HttpRequest("POST", "/apis/work.io/v1/denses", (), (("Content-Type", "application/json"),), text)
        answer, ratio = await memory(server, request)
        assert answer.status == 201
        assert ratio < 62, f"{ratio:.0f} times the body"


async def memory(server, request) -> tuple[ServerResponse, float]:
    """The answer, and how many times the body's size a request takes in memory."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        answer = await server.handler(request)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return answer, (peak - before) / len(request.body)


@pytest.mark.parametrize(
    ("path", "body", "status", "most"),
    [
        pytest.param(
            "/api/v1/namespaces/default/services",
            b'{"metadata":{"name":"x"},"spec":{"ports":[%s]}}' % b",".join([b"null"] * 20_000),
            422,
            120,
            id="each item breaks several rules",
        ),
        pytest.param(
            MAPS,
            b'{"metadata":{"name":"x"},"data":{%s}}' % b",".join([b'"a":""'] * 50_000),
            201,
            30,
            id="one field many times",
        ),
        pytest.param(
            MAPS,
            b'{"metadata":{"name":"x"},"u":[%s]}' % b",".join([b'{"":{}}'] * 30_000),
            201,
            45,
            id="an unknown field with many objects",
        ),
        pytest.param(
            PODS,
            b'{"metadata":{"name":"x"},"spec":{"containers":[{"name":"c","image":"i","env":[%s]}]}}'
            % b",".join(b'{"name":"a%d"}' % number for number in range(30_000)),
            201,
            37,
            id="many variables",
        ),
    ],
)
async def test_a_dense_body_is_not_in_memory_twice(server, path, body, status, most):
    """The server keeps one tree of the body at a time, and nothing large for each of its items."""
    answer, ratio = await memory(server, HttpRequest("POST", path, (), (("Content-Type", "application/json"),), body))
    assert answer.status == status
    assert ratio < most, f"{ratio:.0f} times the body"


async def test_constraints_of_spreading_take_time_that_grows_with_their_number(server):
    """Every constraint is compared with all others, to find those that are there twice."""

    async def taken(count: int) -> float:
        spread = [{"maxSkew": 1, "topologyKey": f"k{n}", "whenUnsatisfiable": "DoNotSchedule"} for n in range(count)]
        spec = {"containers": [{"name": "c", "image": "i"}], "topologySpreadConstraints": spread}
        return await seconds(server, {"metadata": {"name": f"x{count}"}, "spec": spec}, path=PODS)

    few, many = await taken(1_000), await taken(8_000)
    assert many < 24 * few, "eight times as many take eight times as long, not 64 times"
