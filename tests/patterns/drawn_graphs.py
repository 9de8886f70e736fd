"""Machines that are drawn in tests, and objects of them."""

from __future__ import annotations

from steersman.patterns.drawing import Live, Observed
from steersman.patterns.machine import MachineGraph, StateNode


def state(
    name: str,
    condition: str,
    words: str = "",
    *,
    then: str | None = None,
    to: tuple[str, ...] = (),
    returns: str = "",
) -> StateNode:
    """A state, with the steps that fit to where it leads."""
    steps = {"Next"} if then else set[str]()
    steps |= {"Goto"} if to else set()
    return StateNode(
        name=name, condition=condition, words=words, next=then, to=to, returns=frozenset(steps | set(returns.split()))
    )


def chain(*names: str) -> tuple[StateNode, ...]:
    """States that follow each other."""
    pairs = zip(names, (*names[1:], None), strict=True)
    return tuple(
        state(
            name,
            f"{name.title().replace('_', '')}Ready",
            f"Does what {name} is about.",
            then=then,
            returns="Wait" if then else "Wait Done",
        )
        for name, then in pairs
    )


CLUSTER = MachineGraph(
    name="Cluster",
    kind="Postgres",
    states=(
        state(
            "storage", "StorageReady", "A claim for each member, kept when members go.", then="primary", returns="Wait"
        ),
        state("primary", "PrimaryReady", "The one member that writes.", then="replicas", returns="Wait Failed"),
        state("replicas", "ReplicasReady", "The members that follow the primary.", then="backups", returns="Wait"),
        state("backups", "BackupsReady", "A CronJob that saves the data every night.", returns="Done"),
    ),
    finalizer="clean_up",
    finalizer_words="Takes a last backup, then lets the claims go.",
)

BRANCHING = MachineGraph(
    name="Database",
    kind="Database",
    states=(
        state("storage", "StorageReady", "Claims a volume.", then="primary", to=("archive",), returns="Wait"),
        state("primary", "PrimaryReady", "Runs the primary.", then="replicas", to=("degraded",), returns="Wait Failed"),
        state("replicas", "ReplicasReady", "Adds replicas.", then="archive", to=("degraded", "publish")),
        state("archive", "ArchiveReady", "Ships the log to a bucket.", then="publish", returns="Wait"),
        state("publish", "Published", "Tells clients where it is.", returns="Done"),
        state("degraded", "Degraded", "Serves reads from what is left.", to=("repair",), returns="Done Wait"),
        state("repair", "Repaired", "Rebuilds what is broken.", returns="Done Failed"),
    ),
    finalizer="drop",
)

MERGING = MachineGraph(
    name="Site",
    kind="Site",
    states=(
        state("plan", "Planned", "Finds out what there is.", then="build", to=("adopt",)),
        state("build", "Built", "Makes what is missing.", then="serve"),
        state("serve", "Serving", "Opens the doors.", returns="Done"),
        state("adopt", "Adopted", "Takes over an object of others.", to=("serve",), returns="Wait"),
    ),
)

LONG = MachineGraph(
    name="ReplicatedAnalyticalDatabaseClusterWithAVeryLongName",
    kind="ReplicatedAnalyticalDatabaseCluster",
    states=(
        state(
            "wait_for_all_the_volumes_of_every_availability_zone_to_be_bound",
            "EveryVolumeInEveryAvailabilityZoneIsBoundAndFormatted",
            "Waits until each of the volumes, in each of the zones that the spec names, is bound, formatted and mounted, "
            "and says which of them is not; it never deletes one, whatever the spec says about it, and never formats twice.",
            then="reconcile_kubernetes_service_account_token_projection",
            returns="Wait Failed",
        ),
        state(
            "reconcile_kubernetes_service_account_token_projection",
            "ServiceAccountTokenProjected",
            "Ein-sehr-langes-Wort-ohne-Leerzeichen-das-irgendwo-umgebrochen-werden-muss.",
            returns="Done Wait",
        ),
    ),
    finalizer="remove_everything_that_was_ever_made_outside_of_the_cluster",
    finalizer_words="數據庫 <b>&amp; \x1b[31mothers",
)

TEN = MachineGraph(name="Ten", kind="Tower", states=chain(*(f"floor_{number}" for number in range(1, 11))))

ONE = MachineGraph(
    name="site",
    kind="Site",
    states=(state("site", "Ready", "A Deployment and a Service.", returns="Done"),),
)

GRAPHS = {
    "cluster": CLUSTER,
    "branching": BRANCHING,
    "merging": MERGING,
    "long": LONG,
    "ten": TEN,
    "one": ONE,
}

NOT_REACHED = Observed("Unknown", "NotReached", "waits for PrimaryReady")

WAITING = Live(
    name="default/main",
    conditions={
        "Ready": Observed("False", "ChildrenNotReady", "StatefulSet main-primary: 0 of 1 replica is ready"),
        "StorageReady": Observed("True", "Complete"),
        "PrimaryReady": Observed("False", "ChildrenNotReady", "StatefulSet main-primary: 0 of 1 replica is ready"),
        "ReplicasReady": NOT_REACHED,
        "BackupsReady": NOT_REACHED,
    },
)
READY = Live(
    name="default/main",
    conditions={each: Observed("True", "Complete") for each in CLUSTER.conditions},
)
FAILED = Live(
    name="default/main",
    observed=False,
    conditions={
        **WAITING.conditions,
        "Ready": Observed("False", "Error", "the disk is full " * 40),
        "PrimaryReady": Observed("False", "Error", "the disk is full " * 40),
    },
)
DELETING = Live(
    name="default/main",
    deleting=True,
    conditions={
        **READY.conditions,
        "Ready": Observed("False", "Deleting", "clean_up: the last backup runs: 0 of 1 Pod has succeeded, 1 active"),
    },
)
SUSPENDED = Live(
    name="default/main",
    suspended=True,
    conditions={
        **WAITING.conditions,
        "Suspended": Observed("True", "Label", "label steersman.dev/suspend is set; remove it to go on"),
    },
)
NEW = Live(name="default/main", conditions={})
DEGRADED = Live(
    name="shop/orders",
    conditions={
        "Ready": Observed("False", "Waiting", "1 replica is left"),
        "StorageReady": Observed("True", "Complete"),
        "PrimaryReady": Observed("True", "Complete"),
        "Degraded": Observed("False", "Waiting", "1 replica is left"),
        "Repaired": Observed("Unknown", "NotReached", "waits for Degraded"),
    },
)

LIVES = {
    "waiting": (CLUSTER, WAITING),
    "ready": (CLUSTER, READY),
    "failed": (CLUSTER, FAILED),
    "deleting": (CLUSTER, DELETING),
    "suspended": (CLUSTER, SUSPENDED),
    "new": (CLUSTER, NEW),
    "degraded": (BRANCHING, DEGRADED),
    "long": (LONG, FAILED),
    "one": (ONE, WAITING),
}
