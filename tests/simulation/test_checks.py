"""The objects that a check reads."""

from __future__ import annotations

from steersman.kinds.coordination_v1 import Lease
from steersman.simulation import Objects

STORED = (
    b'{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"one","namespace":"default"},'
    b'"spec":{"renewTime":"2030-01-01T00:00:00.123456Z"}}'
)


def test_a_check_reads_every_object_that_a_client_can_read() -> None:
    """Such as one with a time of microseconds."""
    objects = Objects({"coordination.k8s.io/leases/default/one": STORED})
    (lease,) = objects.list(Lease)
    found = objects.get(Lease, "default/one")
    for each in (lease, found):
        assert each is not None
        assert each.spec is not None
        assert each.spec.renew_time is not None
