"""Numbers that no type of Go holds: too large for a double, or too long to be one."""

from __future__ import annotations

from conformance.boats import BOATS, GROUP, installed, obj, version
from conformance.bodies import LEASE, named
from conformance.scenario import get, patch, post, scenario

HUGE = {"large": "1e400", "small": "-1e400", "long": "1" * 400 + ".5"}


def lease(number: str) -> bytes:
    """The text of a Lease with a number as it is written."""
    return (
        b'{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"a"},"spec":{"leaseTransitions":%s}}'
        % number.encode()
    )


def boat(number: str) -> str:
    """The text of a custom resource with a number as it is written."""
    return f'{{"kind":"Boat","apiVersion":"{GROUP}/v1","metadata":{{"name":"a"}},"spec":{{"length":{number}}}}}'


SCENARIOS = [
    *(
        scenario(
            f"built-in-{name}",
            "Status errors",
            post(LEASE, lease(number)),
            post(LEASE, named("coordination.k8s.io/v1", "Lease", "b")),
            patch(f"{LEASE}/b", b'{"spec":{"leaseTransitions":%s}}' % number.encode()),
            get(f"{LEASE}/b"),
            post(LEASE, lease(number), content="application/yaml", dryRun="All"),
        )
        for name, number in HUGE.items()
    ),
    scenario(
        "yaml-infinities",
        "Status errors",
        *(
            post(LEASE, b"{kind: Lease, apiVersion: coordination.k8s.io/v1, metadata: {name: a}, spec: {leaseTransitions: %s}}" % number, content="application/yaml", dryRun="All")
            for number in (b".inf", b"-.inf", b".nan", b"1e400")
        ),
    ),
    *(
        scenario(
            f"custom-{name}",
            "Status errors",
            installed(version(schema=obj(spec={"type": "object", "x-kubernetes-preserve-unknown-fields": True}))),
            post(BOATS, boat(number)),
        )
        for name, number in HUGE.items()
    ),
]  # fmt: skip
