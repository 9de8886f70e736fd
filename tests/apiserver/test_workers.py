"""Large requests: computed in worker threads, so that other clients do not wait for them."""

import asyncio
import json
from time import process_time  # noqa: TID251 - how the time of a computation is shared is what is looked at

from samples.embedded import TABLE, Raw
from samples.virtual_time import run_virtual
from steersman.apiserver import ApiServer
from steersman.apiserver.workers import LARGE, TURNS, Workers

MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"


class Turns:
    """Counts the turns that the loop has while something else goes on."""

    async def __aenter__(self):
        self.count = 0
        self._task = asyncio.create_task(self._run())  # noqa: TID251 - ended below
        return self

    async def __aexit__(self, *_):
        self._task.cancel()

    async def _run(self):
        while True:
            await asyncio.sleep(0)
            self.count += 1


async def test_a_large_body_leaves_the_loop_to_others(raw):
    """While a large body is read, defaulted, managed and validated, the loop has many turns."""
    env = [{"name": f"A{n}", "value": "v"} for n in range(20_000)]
    pod = {"metadata": {"name": "x"}, "spec": {"containers": [{"name": "c", "image": "i", "env": env}]}}
    assert len(json.dumps(pod)) > LARGE
    async with Turns() as turns:
        begin = process_time()
        assert (await raw.post(PODS, pod)).code == 201
        used = process_time() - begin
    assert turns.count > 20 * used, "a turn for each twentieth of a second, at least"


async def test_a_small_patch_of_a_large_object_leaves_the_loop_to_others(raw):
    await raw.post(MAPS, {"metadata": {"name": "x"}, "data": {f"k{n}": "v" for n in range(40_000)}})
    async with Turns() as turns:
        begin = process_time()
        assert (await raw.patch(f"{MAPS}/x", {"data": {"a": "b"}})).code == 200
        used = process_time() - begin
    assert turns.count > 20 * used


async def test_a_change_of_a_large_object_goes_to_a_thread_once_for_each_part(raw, monkeypatch):
    """A busy loop and a thread wait for each other each time: the change, its verdict, the bytes to store."""
    await raw.post(MAPS, {"metadata": {"name": "x", "finalizers": ["a.io/b"]}, "data": {"k": "v" * LARGE}})
    in_thread, count = Workers._in_thread, 0

    async def counted(workers, work):
        nonlocal count
        count += 1
        return await in_thread(workers, work)

    monkeypatch.setattr(Workers, "_in_thread", counted)
    assert (await raw.patch(f"{MAPS}/x", {"data": {"a": "b"}})).code == 200
    changed, count = count, 0
    await raw.delete(f"{MAPS}/x")
    count = 0
    assert (await raw.patch(f"{MAPS}/x", {"metadata": {"finalizers": None}})).code == 200
    assert (await raw.get(f"{MAPS}/x")).code == 404
    assert (changed, count) == (3, 2)


async def test_only_so_many_large_requests_are_processed_at_a_time():
    """The trees of all that wait would be in memory."""
    workers, under_way, most = Workers(), 0, 0

    async def request() -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        # What admission sends within a request needs no turn of its own.
        await workers.in_turn(workers.run(lambda: None, size=LARGE), size=LARGE)
        under_way -= 1

    await asyncio.gather(*(workers.in_turn(request(), size=LARGE) for _ in range(4 * TURNS)))
    workers.close()
    assert most == TURNS


async def test_users_have_turns_in_rotation():
    """A user with many large requests delays those of another user by a few, whatever the order of their arrival."""
    workers, order = Workers(), []

    async def request(user: str) -> None:
        order.append(user)
        await asyncio.sleep(0)

    users = [*["greedy"] * 50, "kim"]
    await asyncio.gather(*(workers.in_turn(request(user), size=LARGE, user=user) for user in users))
    assert order.index("kim") <= 2 * TURNS
    assert order.count("greedy") == 50


async def test_a_turn_of_a_request_that_is_gone_is_the_next_ones():
    workers = Workers()

    async def request() -> None:
        await workers.in_turn(asyncio.sleep(0), size=LARGE, user="kim")

    async with asyncio.timeout(60):
        for _ in range(3):
            tasks = [asyncio.ensure_future(request()) for _ in range(4 * TURNS)]  # noqa: TID251 - ended below
            await asyncio.sleep(0)
            for task in tasks[::2]:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*(request() for _ in range(2 * TURNS)))


def test_large_bodies_are_read_on_a_loop_with_a_clock_of_its_own():
    """What a simulation does must not depend on threads."""

    async def scenario() -> float:
        async with ApiServer(kinds=["v1"]) as server:
            data = {f"k{n}": "v" for n in range(10_000)}
            begin = asyncio.get_running_loop().time()
            assert (await Raw(server.handler).post(MAPS, {"metadata": {"name": "x"}, "data": data})).code == 201
            return asyncio.get_running_loop().time() - begin

    assert run_virtual(scenario())[0] == 0.0


CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def crd(plural: str, item: dict, **version: object) -> dict:
    spec = {"type": "object", "properties": {"l": {"type": "array", "items": item}}}
    made = {"name": "v1", "served": True, "storage": True, **version}
    made["schema"] = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    names = {"plural": plural, "kind": plural.capitalize()}
    return {
        "metadata": {"name": f"{plural}.work.io"},
        "spec": {"group": "work.io", "scope": "Cluster", "names": names, "versions": [made]},
    }


async def test_a_small_body_that_a_schema_judges_for_long_leaves_the_loop_to_others():
    async with ApiServer() as server:
        raw = Raw(server.handler)
        branches = [{"required": [f"k{n}"]} for n in range(300)]
        item = {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "oneOf": branches}
        assert (await raw.post(CRDS, crd("longs", item))).code == 201
        body = {
            "apiVersion": "work.io/v1",
            "kind": "Longs",
            "metadata": {"name": "x"},
            "spec": {"l": [{"k9": 1}] * 1000},
        }
        assert len(json.dumps(body)) < LARGE
        async with Turns() as turns:
            begin = process_time()
            assert (await raw.post("/apis/work.io/v1/longs", body)).code == 201
            used = process_time() - begin
        assert turns.count > 20 * used


async def test_long_yaml_leaves_the_loop_to_others(raw):
    await raw.post(MAPS, {"metadata": {"name": "x"}, "data": {f"k{n}": "v" for n in range(20_000)}})
    async with Turns() as turns:
        begin = process_time()
        reply = await raw.get(f"{MAPS}/x", accept="application/yaml")
        used = process_time() - begin
    assert reply.code == 200
    assert turns.count > 20 * used


async def test_answers_are_computed_one_at_a_time_and_users_take_turns():
    """A user who asks for many costly answers delays another user's by one or two."""
    workers, order, running = Workers(), [], []

    async def ask(user: str) -> None:
        await workers.answer(lambda: (running.append(user), order.append(user), running.pop()), size=LARGE, user=user)
        assert not running

    await asyncio.gather(*(ask(user) for user in [*["greedy"] * 30, "kim"]))
    workers.close()
    assert order.index("kim") <= 2
    assert order.count("greedy") == 30


async def test_a_wide_table_leaves_the_loop_to_others():
    async with ApiServer() as server:
        raw = Raw(server.handler)
        columns = [{"name": f"c{n}", "type": "string", "jsonPath": ".metadata.name"} for n in range(1500)]
        await raw.post(CRDS, crd("wides", {"type": "string"}, additionalPrinterColumns=columns))
        for number in range(30):
            await raw.post(
                "/apis/work.io/v1/wides",
                {"apiVersion": "work.io/v1", "kind": "Wides", "metadata": {"name": f"x{number}"}},
            )
        async with Turns() as turns:
            begin = process_time()
            table = await raw.get("/apis/work.io/v1/wides", accept=TABLE)
            used = process_time() - begin
        assert len(table.body["rows"][0]["cells"]) == 1501
        assert turns.count > 20 * used


async def test_costly_rules_of_a_small_object_leave_the_loop_to_others():
    """Rules whose loops are within each other take long for a short list, at creation and at a small patch alike."""
    async with ApiServer() as server:
        raw = Raw(server.handler)
        made = crd("costs", {"type": "integer"})
        spec = made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
        spec["properties"]["l"]["maxItems"] = 100
        spec["x-kubernetes-validations"] = [
            {"rule": f"self.l.all(x, self.l.all(y, x + y + {number} >= 0))"} for number in range(9)
        ]
        assert (await raw.post(CRDS, made)).code == 201
        body = {
            "apiVersion": "work.io/v1",
            "kind": "Costs",
            "metadata": {"name": "x"},
            "spec": {"l": list(range(100))},
        }
        assert len(json.dumps(body)) < LARGE // 10
        async with Turns() as turns:
            begin = process_time()
            assert (await raw.post("/apis/work.io/v1/costs", body)).code == 201
            used = process_time() - begin
        assert turns.count > 20 * used
        async with Turns() as turns:
            begin = process_time()
            assert (await raw.patch("/apis/work.io/v1/costs/x", {"spec": {"l": list(range(99))}})).code == 200
            used = process_time() - begin
        assert turns.count > 20 * used


async def test_a_long_openapi_document_leaves_the_loop_to_others():
    """The document of a group with many definitions is long; the hashes in the index are made of all of them."""
    async with ApiServer() as server:
        raw = Raw(server.handler)
        wide = {"type": "object", "properties": {f"f{number}": {"type": "string"} for number in range(300)}}
        for number in range(20):
            assert (await raw.post(CRDS, crd(f"many{number}s", wide))).code == 201
        async with Turns() as turns:
            begin = process_time()
            assert (await raw.get("/openapi/v3")).code == 200
            document = await raw.get("/openapi/v3/apis/work.io/v1")
            used = process_time() - begin
        assert "io.work.v1.Many19s" in document.body["components"]["schemas"]
        assert turns.count > 20 * used


async def test_a_policy_with_loops_leaves_the_loop_to_others():
    """A small object can take long, too."""
    loops = "object.data.all(a, object.data.all(b, object.data.all(c, a + b != c)))"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}
    spec = {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": loops}]}
    binding = {"policyName": "slow", "validationActions": ["Deny"]}
    policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic"
    async with ApiServer() as server:
        raw = Raw(server.handler)
        assert (await raw.post(f"{policies}ies", {"metadata": {"name": "slow"}, "spec": spec})).code == 201
        assert (await raw.post(f"{policies}ybindings", {"metadata": {"name": "slow"}, "spec": binding})).code == 201
        async with Turns() as turns:
            made = await raw.post(MAPS, {"metadata": {"name": "a"}, "data": {f"k{n}": "v" for n in range(40)}})
        assert made.code == 201, made.text
        assert turns.count > 5


async def test_a_long_answer_of_a_webhook_leaves_the_loop_to_others():
    """Reading YAML takes seconds for each megabyte."""

    async def call(target, body, *, timeout):  # noqa: ASYNC109
        return b"kind: AdmissionReview\nmore:\n" + b"- {a: 1, b: [2, 3]}\n" * 3_000

    hook = {
        "name": "one.example.com",
        "rules": [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": "https://hooks.example.com"},
        "matchConditions": [{"name": "small", "expression": "object.data.all(a, object.data.all(b, a + b != ''))"}],
    }
    async with ApiServer(webhook_caller=call) as server:
        raw = Raw(server.handler)
        hooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
        assert (await raw.post(hooks, {"metadata": {"name": "a"}, "webhooks": [hook]})).code == 201
        async with Turns() as turns:
            refused = await raw.post(MAPS, {"metadata": {"name": "a"}, "data": {"a": "b"}})
        assert (refused.code, "webhook response was absent" in refused.body["message"]) == (500, True)
        assert turns.count > 5
