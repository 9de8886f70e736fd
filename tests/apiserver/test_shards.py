"""Feature gates of a server, and the metrics about shards. The conformance suite compares lists and watches of shards."""

import asyncio

import pytest

from samples.embedded import Raw
from steersman.apiserver import ApiServer
from steersman.wire import HashRange, ShardSelector, print_query, shard_hash, split_list

CMS = "/api/v1/namespaces/default/configmaps"
HERE, ELSEWHERE = (
    ShardSelector("namespace", (HashRange(shard_hash(name), shard_hash(name) + 1),)) for name in ("default", "other")
)


def selecting(path, shard, **more):
    return f"{path}?{print_query((('shardSelector', str(shard)), *more.items()))}"


@pytest.fixture
async def raw(request):
    async with ApiServer(kinds=["v1"], feature_gates={"ShardedListAndWatch": request.param}) as server:
        yield Raw(server.handler)


async def names_of(raw, shard):
    answer = await raw.get(selecting(CMS, shard))
    page = split_list(answer.text)
    return len(page.items), page.shard_selector


@pytest.mark.parametrize("raw", [True], indirect=True)
async def test_with_the_gate_a_list_is_of_the_shard_and_says_so(raw):
    await raw.post(CMS, {"metadata": {"name": "a"}})
    assert await names_of(raw, HERE) == (1, str(HERE))
    assert await names_of(raw, ELSEWHERE) == (0, str(ELSEWHERE))


@pytest.mark.parametrize("raw", [False], indirect=True)
async def test_without_the_gate_the_selector_is_ignored(raw):
    """Off is kube-apiserver's default too: a client must not believe that it got its shard alone."""
    await raw.post(CMS, {"metadata": {"name": "a"}})
    assert await names_of(raw, ELSEWHERE) == (1, "")
    assert (await raw.get(f"{CMS}?shardSelector=nonsense")).code == 200


@pytest.mark.parametrize(
    ("gates", "error", "why"),
    [
        ({"ShardedListAndWatches": True}, ValueError, "did you mean ShardedListAndWatch"),
        ({"Odd": True}, ValueError, "available: ShardedListAndWatch"),
        ({"ShardedListAndWatch": "true"}, TypeError, "must be True or False"),
    ],
)
def test_a_wrong_gate_is_explained(gates, error, why):
    with pytest.raises(error, match=why):
        ApiServer(kinds=["v1"], feature_gates=gates)


async def metric(raw, name):
    """The value after the labels of a metric's only series; None without one."""
    text = (await raw.get("/metrics")).text.decode()
    return next((float(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith(f"{name}{{")), None)


@pytest.mark.parametrize("raw", [True], indirect=True)
async def test_watches_of_shards_are_counted_and_what_they_leave_out(raw):
    """The numbers are those of kube-apiserver 1.36.3 for the same requests: 1, 2 and 1 states of the object."""
    assert await metric(raw, "kubernetes_feature_enabled") == 1

    async def follow(shard):
        await raw.get(selecting(CMS, shard, watch="true", timeoutSeconds="60"))

    async with asyncio.TaskGroup() as tasks:
        watches = [tasks.create_task(follow(shard)) for shard in (HERE, ELSEWHERE)]
        await becomes(raw, "apiserver_watch_shards_total", 2)
        await raw.post(CMS, {"metadata": {"name": "a"}})
        await raw.patch(f"{CMS}/a", {"data": {"a": "b"}})
        await raw.delete(f"{CMS}/a")
        await becomes(raw, "apiserver_watch_filtered_events_total", 4)
        for each in watches:
            each.cancel()
    await becomes(raw, "apiserver_watch_shards_total", 0)


async def becomes(raw, name, value):
    async with asyncio.timeout(60):
        while await metric(raw, name) != value:  # noqa: ASYNC110 - nothing tells of a metric
            await asyncio.sleep(0)


@pytest.mark.parametrize("raw", [False], indirect=True)
async def test_without_the_gate_only_the_feature_is_listed(raw):
    assert await metric(raw, "kubernetes_feature_enabled") == 0
    await raw.get(selecting(CMS, HERE, watch="true", timeoutSeconds="1"))
    assert await metric(raw, "apiserver_watch_shards_total") is None
