"""What a manager needs of RBAC follows from what it registers."""

from __future__ import annotations

from samples.shops import Shop, old_shops
from samples.site import Site
from steersman import Key, Kind, LeaderElection, Manager
from steersman.controller import owners_through
from steersman.kinds.apps_v1 import Deployment, ReplicaSet
from steersman.kinds.core_v1 import ConfigMap, Namespace, Pod, Secret
from steersman.kinds.rbac_v1 import RoleBinding
from steersman.manager import PermissionRule, Shards, permissions_of, written_bindings
from steersman.webhooks import WebhookEndpoint, mutates

READ = ("get", "list", "watch")


async def nothing(ctx, request): ...


@mutates(Shop)
def shop_defaults(shop: Shop) -> Shop:
    return shop


def site_manager(**options) -> Manager:
    manager = Manager(name="site-operator", **options)
    manager.controller(Site).owns(Deployment).watches(Secret, map=lambda view: [Key("a", "b")]).run_with(nothing)
    return manager


def test_what_is_watched_is_read_what_is_owned_is_written_and_what_is_reconciled_is_reported_on():
    needs = permissions_of(site_manager())
    group = Site.gvk().group
    assert needs.rules == (
        PermissionRule("", ("secrets",), READ),
        PermissionRule("apps", ("deployments",), (*READ, "create", "update", "patch", "delete")),
        PermissionRule("events.k8s.io", ("events",), ("create", "patch")),
        PermissionRule(group, ("sites",), (*READ, "update", "patch")),
        PermissionRule(group, ("sites/finalizers",), ("update",)),
        PermissionRule(group, ("sites/status",), ("get", "update", "patch")),
    )
    assert (needs.namespaces, needs.cluster_rules, needs.own_rules) == ((), (), ())


def test_replicas_with_shards_need_leases_and_the_assignment_in_their_own_namespace():
    needs = permissions_of(site_manager(shards=Shards("site-operator")))
    assert needs.own_rules == (
        PermissionRule("", ("configmaps",), ("create",)),
        PermissionRule("", ("configmaps",), ("get", "watch", "update"), ("site-operator-assignment",)),
        PermissionRule("coordination.k8s.io", ("leases",), ("get", "list", "watch", "create", "update", "delete")),
    )


def test_a_leader_needs_its_lease_in_its_own_namespace():
    needs = permissions_of(site_manager(leader=LeaderElection("site-operator")))
    assert needs.own_rules == (
        PermissionRule("coordination.k8s.io", ("leases",), ("create",)),
        PermissionRule("coordination.k8s.io", ("leases",), ("get", "watch", "update"), ("site-operator",)),
    )


def test_a_manager_of_some_namespaces_needs_nothing_elsewhere_but_what_is_in_no_namespace():
    manager = site_manager(namespaces=("blue", "green"))
    manager.controller(Namespace).owns(ConfigMap).run_with(nothing)
    needs = permissions_of(manager)
    assert needs.namespaces == ("blue", "green")
    assert {resource for rule in needs.cluster_rules for resource in rule.resources} == {
        "namespaces",
        "namespaces/finalizers",
        "namespaces/status",
    }
    assert "configmaps" in {resource for rule in needs.rules for resource in rule.resources}


def test_kinds_between_are_read_and_not_written():
    manager = Manager(name="pods")
    manager.controller(Deployment).watches(Pod, map=owners_through(ReplicaSet)).run_with(nothing)
    verbs = {name: rule.verbs for rule in permissions_of(manager).rules for name in rule.resources}
    assert verbs["pods"] == verbs["replicasets"] == READ


def test_kinds_without_a_class_are_called_by_their_usual_plural():
    manager = Manager(name="widgets")
    manager.controller(Kind("example.com/v1", "Policy"), namespaced=True).run_with(nothing)
    assert PermissionRule("example.com", ("policies",), (*READ, "update", "patch")) in permissions_of(manager).rules


def test_what_only_the_author_knows_is_added():
    needs = permissions_of(site_manager(), also={("", "secrets"): ("create",), ("batch", "jobs"): ("create",)})
    assert PermissionRule("", ("secrets",), (*READ, "create")) in needs.rules
    assert PermissionRule("batch", ("jobs",), ("create",)) in needs.rules


def test_webhooks_need_their_own_objects_alone():
    """A broken operator must not be able to change the webhooks and Secrets of others."""
    manager = Manager(name="shops", webhook_endpoint=WebhookEndpoint(service="town/hooks"))
    for hook in (shop_defaults, old_shops()):
        manager.add(hook)
    needs = permissions_of(manager)
    verbs = ("get", "watch", "update")
    assert needs.own_rules == (
        PermissionRule("", ("secrets",), ("create",)),
        PermissionRule("", ("secrets",), verbs, ("hooks-tls",)),
    )
    group = "admissionregistration.k8s.io"
    assert PermissionRule(group, ("mutatingwebhookconfigurations",), verbs, ("shops",)) in needs.rules
    name = f"shops.{Shop.gvk().group}"
    assert PermissionRule("apiextensions.k8s.io", ("customresourcedefinitions",), verbs, (name,)) in needs.rules
    assert not any(rule.group in {group, "apiextensions.k8s.io"} and not rule.names for rule in needs.rules)


def test_a_name_adds_nothing_to_what_all_objects_have():
    also = {("", "secrets", "a"): ("get", "update"), ("", "secrets", "b"): ("get", "update")}
    needs = permissions_of(site_manager(), also=also)
    assert PermissionRule("", ("secrets",), READ) in needs.rules
    assert PermissionRule("", ("secrets",), ("update",), ("a", "b")) in needs.rules


def test_what_grants_permissions_is_known():
    manager = Manager(name="tenants")
    manager.controller(Site).owns(RoleBinding).run_with(nothing)
    assert written_bindings(manager) == ("rolebindings",)
    assert written_bindings(site_manager()) == ()
