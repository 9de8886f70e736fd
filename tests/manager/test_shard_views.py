"""What a replica of shards shows to people: who has a key, its part of the work, and a name that two programs share."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

from msgspec.structs import replace

from steersman.controller import Causes, Done, KeyRecord, Request
from steersman.controller.records import Records
from steersman.debug import Explanation, ManagerStatistics
from steersman.kinds.core_v1 import ConfigMap
from steersman.manager import Manager, Shards
from steersman.manager.measurements import Measurements
from steersman.manager.shards.assignment import Assignment, Part
from steersman.manager.shards.coordinator import Coordinator
from steersman.manager.shards.holdings import is_in
from steersman.manager.shards.membership import Membership
from steersman.manager.shards.records import Member, member_text, read_member
from steersman.objects import Key
from steersman.telemetry import Registry, expose
from steersman.wire import HashRange, namespace_hash

MOMENT = datetime(2030, 1, 1, tzinfo=UTC)
#: One half of all hashes, and a namespace in it.
LOW, HIGH = HashRange().split(2**63)
LOW_NAME = next(name for name in map(str, range(100)) if LOW.contains(namespace_hash(name)))
HIGH_NAME = next(name for name in map(str, range(100)) if HIGH.contains(namespace_hash(name)))


async def _reconcile(ctx, request):
    return Done()


async def membership_of_low():
    """A replica that works on the low hashes; another one has the others and gives them away."""
    membership = Membership(Shards("sharer"), "sharer-a", "program")
    identity = membership.state.identity
    parts = (Part(range=LOW, owner=identity), Part(range=HIGH, owner="sharer-b.1", next="sharer-c.1", since=1))
    membership.state = replace(membership.state, assignment=Assignment(1, parts))
    membership.holdings.take((LOW,)).begun = True
    return membership


async def test_an_explanation_names_the_replica_that_has_the_key():
    """Otherwise a key without a reconcile here looks forgotten."""
    membership = await membership_of_low()
    manager = Manager(name="program")
    manager.controller(ConfigMap, name="copies").run_with(_reconcile)
    known = [
        Explanation(controller="copies", kind="v1", key=Key(name, "x"), record=None, state="absent", next_run=None)
        for name in (LOW_NAME, HIGH_NAME)
    ]
    here, there = membership.with_holders(known, manager.blueprints)
    assert here.elsewhere == ""
    assert there.elsewhere == "sharer-b.1, which gives it to sharer-c.1"


async def test_the_working_parts_of_all_replicas_are_the_whole():
    """An alert adds them up: what is missing is reconciled by no one."""
    membership = await membership_of_low()
    measurements = Measurements(Registry())
    statistics = ManagerStatistics(
        name="m", version="1", started=MOMENT, now=MOMENT, phase="running", shards=membership.statistics()
    )
    measurements.collect(statistics)
    text = expose(measurements.registry)[1].decode()
    assert 'steersman_shard_part{state="working"} 0.5' in text
    assert 'steersman_shard_part{state="draining"} 0' in text
    assert "steersman_shard_generation 1" in text


def test_two_programs_that_share_a_name_are_reported_once(caplog):
    """Each reconciles a part of its objects, and nothing else would show it."""
    read = read_member({"steersman.dev/replica": member_text(Member(term="a.1", program="shop"))})
    assert read.program == "shop"
    coordinator = Coordinator.__new__(Coordinator)
    coordinator._shards, coordinator._programs = Shards("sharer"), frozenset()
    with caplog.at_level(logging.WARNING, logger="steersman.shards"):
        coordinator._check_programs(frozenset({"shop"}))
        assert caplog.messages == []
        coordinator._check_programs(frozenset({"shop", "bakery"}))
        coordinator._check_programs(frozenset({"shop", "bakery"}))
    (message,) = caplog.messages
    assert "'bakery', 'shop' share the shards sharer" in message


async def test_the_lease_of_a_replica_that_stops_names_the_term_that_ended():
    """With another term in it, the others would wait for a lease before they take its ranges."""
    membership = await membership_of_low()
    assert read_member(membership.annotations(True)).term == "", "it was claimed, and the term is not entered"
    membership.enter()
    ended = membership.state.identity
    assert read_member(membership.annotations(True)).term == ended
    assert read_member(membership.annotations(True)).generation == 1
    membership.begin()
    assert read_member(membership.annotations(False)).term == ended
    assert read_member(membership.annotations(True)).term == ""
    membership.enter()
    assert read_member(membership.annotations(True)).term == membership.state.identity != ended
    assert membership.holdings.ranges == ()


def test_the_record_of_a_key_that_was_given_away_is_dropped():
    """The debug page listed it as failing, and explain showed it as if it were still here."""
    records = Records()
    for result in ("error", "success"):
        for name in (LOW_NAME, HIGH_NAME):
            record = KeyRecord(
                request=Request(Key(name, result)),
                reconcile_id="1",
                causes=Causes(),
                result=result,
                finished=MOMENT,
                seconds=0.5,
                waited=0.0,
                writes=0,
                failures=0,
            )
            records.add(record)
    records.drop(lambda request: is_in((LOW,), request))
    assert {each.request.key.namespace for each in records.newest(10)} == {HIGH_NAME}
    assert records.results == {"error": 2, "success": 2}
