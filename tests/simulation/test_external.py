"""An `External` in a simulation: a run settles when its calls have been made."""

from __future__ import annotations

from steersman import (
    Done,
    LeaderElection,
    Manager,
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
from steersman.patterns import Absent, External, ExternalKey, Present
from steersman.simulation import ExternalSystem, ScenarioUser, simulate

ZONE = ExternalSystem("zone")


class RecordSpec(Spec):
    host: str = "home"


class Record(Resource[RecordSpec, Status], group="external.example.com", version="v1"):
    """A record in a zone outside of the cluster."""


class Records:
    """The client of the zone."""

    async def find(self, key: ExternalKey, record: Record) -> str | None:
        return await ZONE.call("find", record.key.name, lambda: key.uid if key.uid in ZONE.objects else None)

    async def create(self, key: ExternalKey, record: Record) -> str:
        return await ZONE.call("create", record.key.name, lambda: ZONE.add({"host": record.spec.host}, key.uid))

    async def delete(self, key: ExternalKey, record: Record, found: str) -> None:
        await ZONE.call("delete", record.key.name, lambda: ZONE.objects.pop(found, None))


class RecordMachine(StateMachine[Record]):
    def __init__(self) -> None:
        self.records = External(Records(), name="records", late=5)

    @state(condition="Published")
    async def publish(self, record: Record, out: Outputs) -> Done | Wait:
        """Publish the record."""
        match self.records.ensure(record):
            case Present():
                return Done()
            case pending:
                return pending.wait

    @finalizer
    async def withdraw(self, record: Record, out: Outputs) -> Done | Wait:
        """Remove the record."""
        match self.records.remove(record):
            case Absent():
                return Done()
            case pending:
                return pending.wait


def operator() -> Manager:
    manager = Manager(name="records", leader=LeaderElection("records"))
    manager.add(RecordMachine())
    return manager


async def life(user: ScenarioUser) -> None:
    await user.settled()
    await user.client.create(Record(metadata=ObjectMeta(name="home"), spec=RecordSpec()))
    await user.settled()
    await user.client.delete(Record, "home")
    await user.settled()


def test_a_run_waits_for_a_call_in_doubt() -> None:
    """After a crash, an `External` waits until an earlier request can no longer arrive: that is no violation."""
    report = simulate(operator, life, faults=("crash-after-commit",))
    assert report.ok, str(report)


def test_a_run_waits_for_the_retry_of_a_failed_call() -> None:
    """While the zone is away, the delays between the calls grow beyond the end of the outage."""
    report = simulate(operator, life, faults=("outage",))
    report.check()
    assert report.coverage["create external:zone"]["outage"]
