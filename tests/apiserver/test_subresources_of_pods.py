"""A Pod is bound to a node once, and evicted as far as its PodDisruptionBudget allows."""

import pytest

from samples.embedded import Raw
from steersman.apiserver import ApiServer
from steersman.apiserver.storage import MemoryStorage

PODS = "/api/v1/namespaces/default/pods"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


def a_pod(name="a", **spec):
    return {
        "metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": "i"}]} | spec,
    }


def a_binding(name="a", node="here", **metadata):
    return {"metadata": {"name": name} | metadata, "target": {"kind": "Node", "name": node}}


def a_budget(name="a", **spec):
    return {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": {"app": "web"}}, "minAvailable": 1} | spec}


@pytest.fixture
async def server():
    async with ApiServer(kinds=["v1", "policy/v1"]) as server:
        yield server


@pytest.fixture
def raw(server):
    return Raw(server.handler)


async def running(raw, name="a", *, ready=True):
    """A Pod that runs."""
    await raw.post(PODS, a_pod(name, nodeName="here"))
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    told = await raw.patch(f"{PODS}/{name}/status", {"status": {"phase": "Running", "conditions": conditions}})
    assert told.code == 200, told.body


async def allowing(raw, count, *, observed=1, name="a", **spec):
    """A budget whose Pods a controller has counted."""
    made = await raw.post(BUDGETS, a_budget(name, **spec))
    status = {
        "observedGeneration": observed,
        "disruptionsAllowed": count,
        "currentHealthy": 1,
        "desiredHealthy": 2,
        "expectedPods": 2,
    }
    told = await raw.put(f"{BUDGETS}/{name}/status", made.body | {"status": status})
    assert told.code == 200, told.body


async def test_a_pod_is_bound_to_the_node_that_comes_first(raw):
    await raw.post(PODS, a_pod())
    bound = await raw.post(f"{PODS}/a/binding", a_binding(annotations={"why": "room"}))
    assert (bound.code, bound.body["status"]) == (201, "Success")
    pod = (await raw.get(f"{PODS}/a")).body
    assert pod["spec"]["nodeName"] == "here"
    assert pod["metadata"]["annotations"] == {"why": "room"}
    assert [(each["type"], each["status"]) for each in pod["status"]["conditions"]] == [("PodScheduled", "True")]
    again = await raw.post(f"{PODS}/a/binding", a_binding(node="there"))
    assert again.code == 409
    assert again.body["message"] == (
        'Operation cannot be fulfilled on pods/binding "a": pod a is already assigned to node "here"'
    )


@pytest.mark.parametrize(
    ("binding", "code", "words"),
    [
        (a_binding(node=""), 422, "target.name: Required value"),
        (a_binding("b"), 400, "name in URL does not match name in Binding object"),
        (a_binding(uid="11111111-2222-3333-4444-555555555555"), 409, "UID in precondition"),
        (a_binding() | {"target": {"kind": "Pod", "name": "b"}}, 422, "target.kind: Unsupported value"),
    ],
)
async def test_what_is_no_binding_of_this_pod_binds_nothing(raw, binding, code, words):
    await raw.post(PODS, a_pod())
    refused = await raw.post(f"{PODS}/a/binding", binding)
    assert refused.code == code
    assert words in refused.body["message"]
    assert "nodeName" not in (await raw.get(f"{PODS}/a")).body["spec"]


async def test_a_gated_pod_and_one_that_is_tried_get_no_node(raw):
    await raw.post(PODS, a_pod("gated", schedulingGates=[{"name": "wait"}]))
    refused = await raw.post(f"{PODS}/gated/binding", a_binding("gated"))
    assert (refused.code, refused.body["reason"]) == (409, "Conflict")
    await raw.post(PODS, a_pod())
    assert (await raw.post(f"{PODS}/a/binding?dryRun=All", a_binding())).code == 201
    assert "nodeName" not in (await raw.get(f"{PODS}/a")).body["spec"]


async def test_the_older_path_binds_too(raw):
    await raw.post(PODS, a_pod())
    assert (await raw.post("/api/v1/namespaces/default/bindings", a_binding())).code == 201
    assert (await raw.get(f"{PODS}/a")).body["spec"]["nodeName"] == "here"
    missing = await raw.post("/api/v1/namespaces/default/bindings", a_binding("b"))
    assert (missing.code, missing.body["message"]) == (404, 'pods "b" not found')


async def test_a_budget_gives_its_disruptions_away_one_by_one(raw):
    await running(raw, "a")
    await running(raw, "b")
    await allowing(raw, 1)
    assert (await raw.post(f"{PODS}/a/eviction", {"metadata": {"name": "a"}})).code == 201
    assert "deletionTimestamp" in (await raw.get(f"{PODS}/a")).body["metadata"]
    status = (await raw.get(f"{BUDGETS}/a")).body["status"]
    assert status["disruptionsAllowed"] == 0
    assert list(status["disruptedPods"]) == ["a"]
    refused = await raw.post(f"{PODS}/b/eviction", {"metadata": {"name": "b"}})
    assert (refused.code, refused.body["reason"]) == (429, "TooManyRequests")
    assert refused.body["details"]["causes"] == [
        {"reason": "DisruptionBudget", "message": "The disruption budget a needs 2 healthy pods and has 1 currently"}
    ]
    assert "deletionTimestamp" not in (await raw.get(f"{PODS}/b")).body["metadata"]


async def test_an_eviction_waits_for_a_budget_that_was_not_counted_yet(raw):
    await running(raw)
    await allowing(raw, 1, observed=0)
    refused = await raw.post(f"{PODS}/a/eviction", {"metadata": {"name": "a"}})
    assert (refused.code, refused.headers["Retry-After"]) == (429, "10")


async def test_a_tried_eviction_takes_nothing(raw):
    await running(raw)
    await allowing(raw, 1)
    assert (await raw.post(f"{PODS}/a/eviction?dryRun=All", {"metadata": {"name": "a"}})).code == 201
    assert (await raw.get(f"{BUDGETS}/a")).body["status"]["disruptionsAllowed"] == 1
    assert "deletionTimestamp" not in (await raw.get(f"{PODS}/a")).body["metadata"]


async def test_pods_that_do_not_run_or_may_always_go_need_no_budget(raw):
    await allowing(raw, 0, unhealthyPodEvictionPolicy="AlwaysAllow")
    await raw.post(PODS, a_pod("pending"))
    await running(raw, "unready", ready=False)
    for name in ("pending", "unready"):
        assert (await raw.post(f"{PODS}/{name}/eviction", {"metadata": {"name": name}})).code == 201
    await running(raw, "ready")
    assert (await raw.post(f"{PODS}/ready/eviction", {"metadata": {"name": "ready"}})).code == 429


async def test_a_pod_with_two_budgets_is_not_evicted(raw):
    await running(raw)
    await allowing(raw, 1, name="a")
    await allowing(raw, 1, name="b")
    assert (await raw.post(f"{PODS}/a/eviction", {"metadata": {"name": "a"}})).code == 400


async def test_the_options_of_the_deletion_count(raw):
    await running(raw)
    other = {"metadata": {"name": "a"}, "deleteOptions": {"preconditions": {"uid": "other"}}}
    assert (await raw.post(f"{PODS}/a/eviction", other)).code == 409
    at_once = {"metadata": {"name": "a"}, "deleteOptions": {"gracePeriodSeconds": 0}}
    assert (await raw.post(f"{PODS}/a/eviction", at_once)).code == 201
    assert (await raw.get(f"{PODS}/a")).code == 404


class Racing(MemoryStorage):
    """A store in which another request always writes a Pod first: what ``first`` is, and it does that once."""

    first = None

    async def put(self, key, value, *, expect, ttl=None):
        if self.first is not None and "/pods/" in key:
            first, self.first = self.first, None
            await first()
        return await super().put(key, value, expect=expect, ttl=ttl)


async def test_a_pod_that_starts_meanwhile_needs_its_budget():
    """Judged while it was pending, it would be deleted while it runs, whatever its budget allows."""
    async with ApiServer(kinds=["v1", "policy/v1"], storage=(storage := Racing())) as server:
        raw = Raw(server.handler)
        await allowing(raw, 0)
        await raw.post(PODS, a_pod("a", nodeName="here"))
        started = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        storage.first = lambda: raw.patch(f"{PODS}/a/status", {"status": started})
        assert (await raw.post(f"{PODS}/a/eviction", {"metadata": {"name": "a"}})).code == 429
        assert (await raw.get(f"{PODS}/a")).body["metadata"].get("deletionTimestamp") is None


async def test_an_unready_pod_that_becomes_ready_meanwhile_is_kept():
    async with ApiServer(kinds=["v1", "policy/v1"], storage=(storage := Racing())) as server:
        raw = Raw(server.handler)
        await allowing(raw, 0, unhealthyPodEvictionPolicy="AlwaysAllow")
        await running(raw, ready=False)
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        storage.first = lambda: raw.patch(f"{PODS}/a/status", {"status": ready})
        assert (await raw.post(f"{PODS}/a/eviction", {"metadata": {"name": "a"}})).code == 429
        assert (await raw.get(f"{PODS}/a")).body["metadata"].get("deletionTimestamp") is None


async def test_an_eviction_of_one_version_of_a_pod(raw):
    """Its own record in the Pod's status makes a new version, which is not another one to its sender."""
    await running(raw)
    version = str((await raw.get(f"{PODS}/a")).version)
    eviction = {"metadata": {"name": "a"}, "deleteOptions": {"preconditions": {"resourceVersion": version}}}
    assert (await raw.post(f"{PODS}/a/eviction", eviction)).code == 201


@pytest.mark.parametrize(
    ("subresource", "more"), [("eviction", {}), ("binding", {"target": {"kind": "Node", "name": "here"}})]
)
async def test_admission_names_no_other_pod(subresource, more):
    async def rename(attributes):
        if attributes.subresource == subresource:
            attributes.obj["metadata"]["name"] = "b"

    async with ApiServer(kinds=["v1", "policy/v1"], admission=[rename]) as server:
        raw = Raw(server.handler)
        for name in "ab":
            await raw.post(PODS, a_pod(name))
        answer = await raw.post(f"{PODS}/a/{subresource}", {"metadata": {"name": "a"}} | more)
        assert (answer.code, answer.body["message"]) == (
            400,
            f"name in URL does not match name in {subresource.capitalize()} object",
        )


@pytest.mark.parametrize("subresource", ["eviction", "binding"])
async def test_an_unknown_format_is_rejected_before_wrong_options(raw, subresource):
    """A client that gets 415 sends another format; with 422 it would look for its mistake elsewhere."""
    answer = await raw.send("POST", f"{PODS}/a/{subresource}?fieldValidation=Loud", {}, content_type="text/plain")
    assert (answer.code, answer.body["reason"]) == (415, "UnsupportedMediaType")
