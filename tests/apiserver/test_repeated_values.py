"""Checks for repeated values compare each value with few others: a long list is not a quadratic amount of work."""

import pytest

from steersman.apiserver.quotas.rules import PODS, usage_rules
from steersman.apiserver.registry.kind_rules import strategy_of
from steersman.objects import GroupVersionKind

NUMBER = 300


class Counted(str):
    """A text that counts its comparisons."""

    __slots__ = ()
    comparisons = 0
    __hash__ = str.__hash__

    def __eq__(self, other):
        Counted.comparisons += 1
        return str.__eq__(self, other)


def names():
    return [Counted(f"name-{number}") for number in range(NUMBER)]


def storage_class(terms):
    return {"metadata": {"name": "a"}, "provisioner": "a", "volumeBindingMode": "Immediate", "allowedTopologies": terms}


def node(drivers):
    return {"metadata": {"name": "a"}, "spec": {"drivers": drivers}}


KINDS = {
    "usages": (
        ("certificates.k8s.io", "v1", "CertificateSigningRequest"),
        lambda: {"metadata": {"name": "a"}, "spec": {"usages": names()}},
    ),
    "values": (
        ("storage.k8s.io", "v1", "StorageClass"),
        lambda: storage_class([{"matchLabelExpressions": [{"key": "a", "values": names()}]}]),
    ),
    "terms": (
        ("storage.k8s.io", "v1", "StorageClass"),
        lambda: storage_class([{"matchLabelExpressions": [{"key": "a", "values": [name]}]} for name in names()]),
    ),
    "topology keys": (
        ("storage.k8s.io", "v1", "CSINode"),
        lambda: node([{"name": "a", "nodeID": "a", "topologyKeys": names()}]),
    ),
    "drivers": (
        ("storage.k8s.io", "v1", "CSINode"),
        lambda: node([{"name": name, "nodeID": "a"} for name in names()]),
    ),
    "addresses": (
        ("", "v1", "Node"),
        lambda: {"metadata": {}, "status": {"addresses": [{"type": "Hostname", "address": name} for name in names()]}},
    ),
}


@pytest.mark.parametrize("which", KINDS)
def test_a_check_compares_each_value_with_few_others(which):
    """A kind's own rules, for a new object and for one that changes."""
    kind, make = KINDS[which]
    strategy = strategy_of(GroupVersionKind(*kind))
    old, new = make(), make()
    Counted.comparisons = 0
    strategy.validate_create(new)
    strategy.validate_update(new, old)
    assert Counted.comparisons < 30 * NUMBER


def test_a_quota_compares_each_container_with_few_others():
    """The usage of a Pod is counted on the event loop."""
    init, main = ([{"name": f"{sort}{name}"} for name in names()] for sort in ("init-", ""))
    for one in (*init, *main):
        one["name"] = Counted(one["name"])
    statuses = [{"name": one["name"], "resources": {}} for one in main]
    pod = {"spec": {"containers": main, "initContainers": init}, "status": {"containerStatuses": statuses}}
    Counted.comparisons = 0
    usage_rules(PODS).usage(pod)
    assert Counted.comparisons < 30 * NUMBER
