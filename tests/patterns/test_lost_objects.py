"""Objects that vanish although they have a finalizer: kube-apiserver lets a deletion overtake a finalizer that is being added."""

from __future__ import annotations

import asyncio
import base64
from contextlib import suppress
from typing import Any

import pytest

from steersman import (
    Done,
    Manager,
    MergePatch,
    ObjectMeta,
    Outputs,
    Resource,
    Spec,
    StateMachine,
    Status,
    Wait,
    finalizer,
    state,
)
from steersman.cache import KindOptions
from steersman.errors import ApiError, ApiStatus, Expired, OutcomeUnknown
from steersman.objects import Selector
from steersman.patterns.machine import finalizers, lost_objects
from steersman.testing import Plane, eventually
from steersman.testing.plugin import namespace_for
from steersman.testing.remote_hosts import EngineHost

GROUP, OURS = "lost.test.dev", "lost.test.dev/storage"


class BucketSpec(Spec):
    """What is wanted."""

    size: int = 1


class Bucket(Resource[BucketSpec, Status], group=GROUP, version="v1"):
    """Stands for something outside of the cluster."""


class Effects:
    """What the operator did, by uid."""

    def __init__(self) -> None:
        self.made: set[str] = set()
        self.removed: set[str] = set()
        #: The uids whose owner was gone in the clean-up.
        self.gone: set[str] = set()
        #: How often a clean-up waits before it is complete.
        self.waits = 0

    def manager(self, **options: Any) -> Manager:
        effects = self

        class Machine(StateMachine[Bucket], name="buckets", finalizer=OURS):
            @state(condition="Made")
            async def made(self, bucket: Bucket, out: Outputs) -> Done:
                """Make it."""
                effects.made.add(bucket.uid)
                return Done()

            @finalizer
            async def remove(self, bucket: Bucket, out: Outputs) -> Done | Wait:
                """Remove it."""
                if effects.waits:
                    effects.waits -= 1
                    return Wait("it takes time", after=0.05)
                effects.removed.add(bucket.uid)
                if out.owner_is_gone:
                    effects.gone.add(bucket.uid)
                assert not out.namespace_ends
                return Done()

        manager = Manager(name="lost", **options)
        manager.add(Machine())
        return manager


@pytest.fixture
def engine_plane(request: pytest.FixtureRequest, engine: Any) -> Any:
    host = EngineHost(engine)
    plane = Plane(host, namespace=namespace_for(request.node.name))
    yield plane
    plane.end()
    host.end()


async def erase(engine: Any, namespace: str, name: str) -> None:
    """Delete an object in etcd, as the second step of a deletion does that saw no finalizer in its first."""
    key = base64.b64encode(f"/registry/{GROUP}/buckets/{namespace}/{name}".encode()).decode()
    done = await engine._thread.call(engine._own("etcd")._ask_etcd("/v3/kv/deleterange", {"key": key}))
    assert done["deleted"] == "1"


async def test_a_clean_up_runs_for_an_object_that_its_finalizer_did_not_hold(
    engine: Any, engine_plane: Plane, caplog: pytest.LogCaptureFixture
) -> None:
    client, effects = engine_plane.client, Effects()
    async with engine_plane.running(effects.manager()) as operator:
        first = await client.create(Bucket(metadata=ObjectMeta(name="b"), spec=BucketSpec()))
        await operator.drained()
        assert effects.made == {first.uid}
        effects.waits = 2
        await erase(engine, engine_plane.namespace, "b")
        await eventually(lambda: effects.removed == {first.uid})
        second = await client.create(Bucket(metadata=ObjectMeta(name="b"), spec=BucketSpec()))
        await operator.drained()
        assert effects.made == {first.uid, second.uid}
        await client.delete(Bucket, "b")
        await eventually(client, Bucket, "b", gone=True)
        assert effects.removed == {first.uid, second.uid}
        assert effects.gone == {first.uid}
    assert f"the server deleted the object with uid {first.uid} although it had a finalizer" in caplog.text


async def test_a_clean_up_may_take_longer_than_the_server_keeps_events(
    engine: Any, engine_plane: Plane, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    client, effects, reads = engine_plane.client, Effects(), list[str]()
    last_state = lost_objects._last_state

    async def once(ctx: Any, kind: Any, uid: str, version: str) -> Any:
        reads.append(uid)
        if len(reads) > 1:
            raise Expired(ApiStatus(message="too old", reason="Expired", code=410))
        return await last_state(ctx, kind, uid, version)

    monkeypatch.setattr(lost_objects, "_last_state", once)
    async with engine_plane.running(effects.manager()) as operator:
        bucket = await client.create(Bucket(metadata=ObjectMeta(name="b"), spec=BucketSpec()))
        await operator.drained()
        effects.waits = 3
        await erase(engine, engine_plane.namespace, "b")
        await eventually(lambda: effects.removed == {bucket.uid})
    assert reads == [bucket.uid]
    assert f"the clean-up for the deleted object with uid {bucket.uid} is not complete: it takes time" in caplog.text


async def test_a_suspended_object_is_not_cleaned_up_and_the_log_says_so(
    engine: Any, engine_plane: Plane, caplog: pytest.LogCaptureFixture
) -> None:
    """Its condition and its event are gone with it."""
    client, effects = engine_plane.client, Effects()
    async with engine_plane.running(effects.manager()) as operator:
        bucket = await client.create(Bucket(metadata=ObjectMeta(name="b"), spec=BucketSpec()))
        await operator.drained()
        await client.patch(Bucket, "b", MergePatch({"metadata": {"labels": {"steersman.dev/suspend": "by-me"}}}))
        await operator.drained()
        await erase(engine, engine_plane.namespace, "b")
        label = "it had the label steersman.dev/suspend=by-me"
        words = f"no clean-up runs for the deleted object with uid {bucket.uid}: {label}"
        await eventually(lambda: words in caplog.text)
    assert not effects.removed


async def test_an_answer_that_was_lost_hides_no_new_finalizer(
    engine: Any, engine_plane: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server has set the finalizer all the same, so the next reconcile finds it and makes the bucket."""
    client, effects, sent = engine_plane.client, Effects(), list[str]()
    patch = finalizers._patch

    async def loses_the_first_answer(client: Any, obj: Any, operations: Any, tried: str) -> Any:
        answer = await patch(client, obj, operations, tried)
        sent.append(tried)
        if len(sent) == 1:
            raise OutcomeUnknown("the answer was lost")
        return answer

    monkeypatch.setattr(finalizers, "_patch", loses_the_first_answer)
    async with engine_plane.running(effects.manager()) as operator:
        bucket = await client.create(Bucket(metadata=ObjectMeta(name="b"), spec=BucketSpec()))
        await eventually(lambda: effects.made == {bucket.uid})
        await operator.drained()
        assert len(sent) == 1
        await erase(engine, engine_plane.namespace, "b")
        await eventually(lambda: effects.removed == {bucket.uid})


async def test_an_object_that_leaves_the_selector_is_not_lost(plane: Plane, monkeypatch: pytest.MonkeyPatch) -> None:
    """A watch for its end would occupy a worker for seconds: no such event comes."""
    client, effects, reads = plane.client, Effects(), list[str]()

    async def last_state(ctx: Any, kind: Any, uid: str, version: str) -> None:
        reads.append(uid)

    monkeypatch.setattr(lost_objects, "_last_state", last_state)
    manager = effects.manager(kinds={Bucket: KindOptions(labels=Selector.of({"mine": "yes"}))})
    async with plane.running(manager) as operator:
        bucket = await client.create(Bucket(metadata=ObjectMeta(name="b", labels={"mine": "yes"}), spec=BucketSpec()))
        await operator.drained()
        assert effects.made == {bucket.uid}
        await client.patch(Bucket, "b", MergePatch({"metadata": {"labels": {"mine": "no"}}}))
        await operator.drained()
        assert not reads
        await client.patch(Bucket, "b", MergePatch({"metadata": {"labels": {"mine": "yes"}}}))
        await client.delete(Bucket, "b")
        await eventually(client, Bucket, "b", gone=True)
        assert effects.removed == {bucket.uid}


async def test_a_finalizer_that_a_person_removed_is_not_cleaned_up(plane: Plane) -> None:
    client, effects = plane.client, Effects()
    async with plane.running(effects.manager()) as operator:
        bucket = await client.create(Bucket(metadata=ObjectMeta(name="b"), spec=BucketSpec()))
        await operator.drained()
        assert effects.made == {bucket.uid}
        effects.made.clear()
        await client.patch(
            Bucket, "b", MergePatch({"metadata": {"finalizers": None, "labels": {"steersman.dev/suspend": "true"}}})
        )
        await client.delete(Bucket, "b")
        await eventually(client, Bucket, "b", gone=True)
        await operator.drained()
        assert not effects.removed


async def test_deletions_beside_the_first_reconcile_leave_nothing(plane: Plane) -> None:
    """Each meets another step of the operator. On kube-apiserver, some overtake the finalizer."""
    client, effects = plane.client, Effects()
    async with plane.running(effects.manager()) as operator:
        for number in range(40):
            with suppress(ApiError):  # the one before may still be in deletion
                await client.create(Bucket(metadata=ObjectMeta(name="b"), spec=BucketSpec()))
            await asyncio.sleep(0.003 * (number % 7))
            with suppress(ApiError):
                await client.delete(Bucket, "b")
        await eventually(client, Bucket, "b", gone=True)
        await operator.drained()
        assert effects.made <= effects.removed
