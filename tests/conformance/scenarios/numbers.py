"""Numbers that no type of Go holds: too large for a double, too long to be one, or a text of too many digits."""

from __future__ import annotations

from conformance.boats import BOATS, GROUP, installed, obj, version
from conformance.bodies import DAEMON_SET, DEPLOYMENT, JOB, LEASE, daemon_set, deployment, job, merged, named
from conformance.scenario import get, patch, post, put, scenario

#: A number that 64 bits do not hold.
DIGITS = "9" * 20
GENERATION = "deprecated.daemonset.template.generation"
INDEXED = {"completionMode": "Indexed", "completions": 10, "backoffLimitPerIndex": 1}
SLICES = "/apis/discovery.k8s.io/v1/namespaces/{ns}/endpointslices"
#: More digits than Python parses without being told to.
LONG = "9" * 5000
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


def endpoint_slice(name: str, address: str) -> dict[str, object]:
    """An EndpointSlice with one address."""
    return named("discovery.k8s.io/v1", "EndpointSlice", name, addressType="IPv4", endpoints=[{"addresses": [address]}])


SCENARIOS = [
    scenario(
        "digits-in-texts",
        "Status errors",
        post(DEPLOYMENT, deployment(strategy={"rollingUpdate": {"maxUnavailable": f"{DIGITS}%"}})),
        post(DEPLOYMENT, deployment(strategy={"rollingUpdate": {"maxUnavailable": f"{'0' * len(DIGITS)}%", "maxSurge": 0}}), dryRun="All"),
        post(DAEMON_SET, merged(daemon_set(), {"metadata": {"annotations": {GENERATION: DIGITS}}})),
        get(f"{DAEMON_SET}/a"),
        post(DAEMON_SET, merged(daemon_set("b"), {"metadata": {"annotations": {GENERATION: str(2**63 - 1)}}})),
        patch(f"{DAEMON_SET}/b", {"spec": {"template": {"metadata": {"annotations": {"a": "b"}}}}}),
        post(DAEMON_SET, daemon_set()),
        put(f"{DAEMON_SET}/a", merged(daemon_set(), {"metadata": {"annotations": {GENERATION: "x"}}})),
        post(SLICES, endpoint_slice("a", f"{DIGITS}.1.1.1")),
        post(SLICES, endpoint_slice("b", f"{'0' * len(DIGITS)}1.1.1.1")),
        post(JOB, job(**INDEXED, successPolicy={"rules": [{"succeededIndexes": f"0-{DIGITS}"}]})),
        post(JOB, job(**INDEXED)),
        patch(f"{JOB}/a/status", {"status": {"completedIndexes": f"0-{DIGITS}", "failedIndexes": "1"}}),
        patch(f"{JOB}/a/status", {"status": {"completedIndexes": "0-9999999999", "failedIndexes": "1"}}),
        patch(f"{JOB}/a/status", {"status": {"completedIndexes": "0-3,5", "failedIndexes": "3-4"}}),
        patch(f"{JOB}/a/status", {"status": {"completedIndexes": "x,0-3,9-7", "failedIndexes": "2"}}),
    ),
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
    scenario(
        "integers-of-many-digits", "Status errors, Patch",
        post(LEASE, lease(LONG)), post(LEASE, lease(f"-{LONG}")), post(LEASE, lease(LONG), content="application/yaml"),
        post(LEASE, lease("[" + LONG + "]")),
        post(DEPLOYMENT, b'{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"a"},"spec":{"replicas":%s}}' % LONG.encode()),
        post(LEASE, named("coordination.k8s.io/v1", "Lease", "b")),
        *(patch(f"{LEASE}/b", b'{"spec":{"leaseTransitions":%s}}' % LONG.encode(), kind) for kind in ("merge", "strategic")),
        patch(f"{LEASE}/b", b'[{"op":"add","path":"/spec/leaseTransitions","value":%s}]' % LONG.encode(), "json"),
        patch(f"{LEASE}/b", lease(LONG), "apply", fieldManager="x"),
        installed(version(schema=obj(spec={"type": "object", "x-kubernetes-preserve-unknown-fields": True}))),
        post(BOATS, boat(LONG)), post(BOATS, boat(LONG), content="application/yaml"),
        post(BOATS, boat("1")), patch(f"{BOATS}/a", b'{"spec":{"length":%s}}' % LONG.encode()),
        patch(f"{BOATS}/a", b'[{"op":"add","path":"/spec/length","value":%s}]' % LONG.encode(), "json"),
    ),
]  # fmt: skip
