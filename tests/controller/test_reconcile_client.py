"""What the client of a reconcile tells of its writes."""

import pytest

from samples.limited import limited, rule
from samples.raw_server import always, answer, serving
from samples.site import Site, site
from steersman import Client, MergePatch, ObjectMeta
from steersman.client import BearerToken, Config, KindScope, RetryPolicy
from steersman.controller import ReconcileClient, reconcile_pipeline
from steersman.errors import Forbidden, OutcomeUnknown
from steersman.kinds.autoscaling_v1 import Scale
from steersman.kinds.core_v1 import ConfigMap
from steersman.objects import encode


class Told:
    """Records what it observes."""

    def __init__(self):
        self.told = []

    def written(self, write, obj):
        assert write.resource_version == obj.metadata.resource_version
        self.told.append(("written", write.kind.kind, write.key.name, write.subresource, write.certain))

    def deleted(self, kind, key, uid):
        self.told.append(("deleted", kind.kind, key.name, uid))

    def touched(self, kind, key):
        self.told.append(("touched", kind.kind, key and key.name))

    def unknown(self, kind, key, *, namespace=""):
        self.told.append(("unknown", kind.kind, key and key.name, namespace))


@pytest.fixture
def observed(client):
    told = Told()
    return ReconcileClient(reconcile_pipeline(client, (told,))), told


def config(name, namespace, **data):
    return ConfigMap(metadata=ObjectMeta(name=name, namespace=namespace), data=data)


async def test_every_verb_that_writes_is_observed(observed, namespace, sites):
    client, told = observed
    made = await client.create(site("web", namespace))
    made.spec.replicas = 3
    updated = await client.update(made)
    await client.patch(
        Site, made.key, MergePatch({"status": {"replicas": 1, "readyReplicas": 1}}), subresource="status"
    )
    await client.apply(config("a", namespace, k="1"))
    await client.patch_subresource(Site, made.key, "scale", MergePatch({"spec": {"replicas": 5}}), returns=Scale)
    await client.delete_collection(ConfigMap, namespace=namespace, labels={"no": "such"})
    await client.create(config("doomed", namespace))
    await client.delete_collection(ConfigMap, namespace=namespace, fields={"metadata.name": "doomed"})
    await client.delete(Site, made.key)
    assert told.told == [
        ("written", "Site", "web", "", True),
        ("written", "Site", "web", "", True),
        # what it was before is unknown
        ("written", "Site", "web", "status", False),
        ("written", "ConfigMap", "a", "", True),
        ("touched", "Site", "web"),
        ("written", "ConfigMap", "doomed", "", True),
        ("touched", "ConfigMap", "doomed"),
        ("deleted", "Site", "web", updated.metadata.uid),
    ]


async def test_reads_and_dry_runs_are_not_told(observed, namespace, sites):
    client, told = observed
    await client.create(site("dry", namespace), dry_run=True)
    await client.live.create(config("real", namespace))
    await client.get(ConfigMap, f"{namespace}/real")
    await client.list(ConfigMap, namespace=namespace)
    await client.delete(ConfigMap, f"{namespace}/real", dry_run=True)
    assert [each[:3] for each in told.told] == [("written", "ConfigMap", "real")]


async def test_a_deletion_that_only_began_is_written(client, namespace, sites):
    """The answer shows the object as it is marked; so a reader sees it, and its event is known to be ours."""
    told = Told()
    held = site("held", namespace)
    held.metadata.finalizers = ["test.dev/clean"]
    known = encode(await client.create(held))
    ours = client.observed((told,), before=lambda kind, key: known)
    marked = await ours.delete(Site, f"{namespace}/held", propagation="Foreground")
    assert isinstance(marked, Site)
    assert marked.metadata.deletion_timestamp
    # already marked: it changes nothing, and its answer has a version that is not its own
    known = encode(marked)
    assert (await ours.delete(held)).metadata.resource_version == marked.metadata.resource_version
    await client.patch(Site, f"{namespace}/held", MergePatch({"metadata": {"finalizers": None}}))
    assert told.told == [("written", "Site", "held", "", True), ("written", "Site", "held", "", False)]


async def test_what_was_not_known_before_is_not_certain(client, namespace):
    """Its managedFields cannot tell: who only removes fields leaves no entry there."""
    told = Told()
    made = await client.create(config("shared", namespace, a="1", b="1"))
    await client.patch(ConfigMap, made.key, MergePatch({"data": {"b": None}}))
    ours = client.observed((told,))
    await ours.patch(ConfigMap, made.key, MergePatch({"data": {"a": "1"}}))
    await ours.apply(config("fresh", namespace, a="1"))
    # the apply created it: what it shows is ours alone
    assert told.told == [("written", "ConfigMap", "shared", "", False), ("written", "ConfigMap", "fresh", "", True)]


async def test_what_was_known_before_makes_a_write_certain(client, namespace):
    told = Told()
    made = await client.create(config("known", namespace, theirs="1"))
    known = encode(made)
    ours = ReconcileClient(reconcile_pipeline(client, (told,), before=lambda kind, key: known))
    patch = MergePatch({"data": {"ours": "1"}})
    await ours.patch(ConfigMap, made.key, patch)
    await client.patch(ConfigMap, made.key, MergePatch({"data": {"theirs": "2"}}))
    # without effect: answered with the version of the other's write, which was not known
    await ours.patch(ConfigMap, made.key, patch)
    assert [certain for *_, certain in told.told] == [True, False]


async def test_a_deletion_of_many_that_fails_is_unknown_for_all():
    """The server deletes one by one: what it refused may have come after something it did."""
    refusal = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403}
    told = Told()
    async with serving(always(answer(refusal, status="403 Forbidden"))) as server:
        where = Config(server.address, auth=BearerToken("token"), proxy_url=None)
        async with Client.connect(where, retry=RetryPolicy(attempts=1), timeout=60.0) as client:
            with pytest.raises(Exception, match="Forbidden"):
                await client.observed((told,)).delete_collection(ConfigMap, namespace="default")
    assert told.told == [("unknown", "ConfigMap", None, "default")]


async def test_a_deletion_of_many_that_the_authorizer_denies_leaves_no_doubt(api_server, client, namespace):
    """The denial precedes the first object, so the next read of each of them is still answered by the cache."""
    told = Told()
    async with limited(api_server, client, namespace, rule("configmaps")) as operator:
        with pytest.raises(Forbidden):
            await operator.client.observed((told,)).delete_collection(ConfigMap, namespace=namespace)
    assert told.told == []


async def test_an_existing_object_that_the_cache_does_not_know_yet_is_updated(client, namespace):
    class Empty:
        metadata = property(lambda self: self)

        def answers(self, kind, /):
            raise AssertionError

        def scope(self, kind, namespaced, /):
            return KindScope()

        async def get(self, kind, key, /):
            raise AssertionError("a cache cannot say whether to create")

        async def list(self, kind, /, *, namespace, labels):
            raise AssertionError

        async def head(self, kind, /, *, namespace, labels):
            raise AssertionError

    await client.create(config("there", namespace, k="1"))
    ours = client.observed(cache=Empty())
    outcome = await ours.create_or_update(config("there", namespace), lambda each: each.data.update(k="2"))
    assert (outcome.operation, outcome.object.data) == ("updated", {"k": "2"})


async def test_a_lost_answer_is_unknown():
    """The server hangs up after the request: the write may or may not have happened."""

    async def hang_up(talk):
        await talk.request()

    told = Told()
    async with serving(hang_up) as server:
        where = Config(server.address, auth=BearerToken("token"), proxy_url=None)
        async with Client.connect(where, retry=RetryPolicy(attempts=1), timeout=60.0) as client:
            with pytest.raises(OutcomeUnknown):
                await client.observed((told,)).create(config("lost", "default"))
    assert told.told == [("unknown", "ConfigMap", "lost", "")]


async def test_a_refusal_is_not_observed():
    refusal = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403}
    told = Told()
    async with serving(always(answer(refusal, status="403 Forbidden"))) as server:
        where = Config(server.address, auth=BearerToken("token"), proxy_url=None)
        async with Client.connect(where, retry=RetryPolicy(attempts=1), timeout=60.0) as client:
            with pytest.raises(Exception, match="Forbidden"):
                await client.observed((told,)).create(config("no", "default"))
    assert told.told == []
