"""Who owns what after an apply, and what becomes of fields that no manager applies any more."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any

import pytest

from steersman.patches import (
    ApplyConflicts,
    FieldManager,
    FieldSet,
    MergeSchema,
    NotConvertible,
    SchemaMismatch,
    TooDeep,
    UnknownVersion,
    extract_applied_tree,
    format_path,
)

TEXT = {"type": "string"}
SCHEMA = MergeSchema(
    {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "image": TEXT,
                    "replicas": {"type": "integer"},
                    "set": {"type": "array", "x-kubernetes-list-type": "set", "items": TEXT},
                    "ports": {
                        "type": "array",
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["port"],
                        "items": {"type": "object", "properties": {"port": {"type": "integer"}, "name": TEXT}},
                    },
                },
            }
        },
    }
)
UNTYPED = MergeSchema.untyped()
EMPTY = {"apiVersion": "example.com/v1", "kind": "Site"}


class TwoVersions:
    """v1, and v0 in which the image has another name; what is older is gone, and other groups never were."""

    def __init__(self, old: MergeSchema = UNTYPED) -> None:
        self._old = old

    def schema(self, api_version: str) -> MergeSchema:
        if not api_version.startswith("example.com/"):
            raise NotConvertible(api_version)
        if api_version not in {"example.com/v0", "example.com/v1"}:
            raise UnknownVersion(api_version)
        return self._old if api_version == "example.com/v0" else SCHEMA

    def ignored(self, api_version: str) -> FieldSet:
        return FieldSet()

    def convert(self, tree: Mapping[str, Any], api_version: str) -> Mapping[str, Any]:
        self.schema(api_version)
        if tree["apiVersion"] == api_version:
            return tree
        names = {"image": "picture"} if api_version == "example.com/v0" else {"picture": "image"}
        spec = {names.get(name, name): value for name, value in (tree.get("spec") or {}).items()}
        return {**tree, "apiVersion": api_version, "spec": spec}


FIELDS = FieldManager(TwoVersions(), api_version="example.com/v1")


def site(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Site", "metadata": {"name": "web"}, "spec": spec}


def applied(live: dict[str, Any], manager: str, *, force: bool = False, now: str = "2030-01-01T00:00:00Z", **spec: Any):
    return FIELDS.apply(live, site(**spec), manager=manager, now=now, force=force, empty=EMPTY)


def updated(live: dict[str, Any], manager: str, **spec: Any) -> dict[str, Any]:
    new = {**live, "spec": spec}
    return FIELDS.update(live, new, manager=manager, now="2030-01-02T00:00:00Z", empty=EMPTY)


def owners(tree: dict[str, Any]) -> dict[str, list[str]]:
    entries = tree["metadata"].get("managedFields", [])
    return {entry["manager"]: [format_path(path) for path in FieldSet.parse(entry["fieldsV1"])] for entry in entries}


def test_what_one_manager_gives_up_goes_and_what_two_applied_stays():
    live = applied(EMPTY, "ada", image="a", replicas=1, set=["x", "y"])
    live = applied(live, "ben", replicas=1, set=["y", "z"])
    live = applied(live, "ada", image="a")
    assert live["spec"] == {"image": "a", "replicas": 1, "set": ["y", "z"]}
    assert owners(live) == {
        "ada": [".spec.image"],
        "ben": [".spec.replicas", '.spec.set[="y"]', '.spec.set[="z"]'],
    }


def test_a_conflict_names_owner_and_field_and_force_takes_it():
    live = applied(EMPTY, "ada", image="a", replicas=1)
    with pytest.raises(ApplyConflicts) as refused:
        applied(live, "ben", image="b", replicas=1)
    assert [(each.owner.manager, format_path(each.path)) for each in refused.value.conflicts] == [
        ("ada", ".spec.image")
    ]
    live = applied(live, "ben", force=True, image="b", replicas=1)
    assert owners(live) == {"ada": [".spec.replicas"], "ben": [".spec.image", ".spec.replicas"]}


def test_an_update_takes_what_it_changes_and_nothing_else():
    live = updated(applied(EMPTY, "ada", image="a", replicas=1), "kubectl-edit", image="b", replicas=1)
    assert owners(live) == {"ada": [".spec.replicas"], "kubectl-edit": [".spec.image"]}


def test_items_keep_their_places_and_new_ones_stand_where_they_were_applied():
    live = applied(EMPTY, "ada", ports=[{"port": 1}, {"port": 2}, {"port": 3}])
    live = applied(live, "ben", ports=[{"port": 4}, {"port": 3, "name": "three"}, {"port": 5}])
    assert [port["port"] for port in live["spec"]["ports"]] == [1, 2, 4, 3, 5]
    assert live["spec"]["ports"][3] == {"port": 3, "name": "three"}


def test_an_apply_that_changes_nothing_keeps_its_time():
    live = applied(EMPTY, "ada", image="a", now="2030-01-01T00:00:00Z")
    again = applied(live, "ada", image="a", now="2031-01-01T00:00:00Z")
    assert again == live


def test_an_object_without_owners_gets_one_before_its_first_apply():
    live = applied(site(image="a", replicas=2), "ada", replicas=2)
    assert owners(live)["before-first-apply"] == [".spec", ".spec.image", ".spec.replicas"]
    assert live["spec"] == {"image": "a", "replicas": 2}


@pytest.mark.parametrize("sent", [[], [{}]])
def test_an_update_may_forget_all_owners(sent):
    live = applied(EMPTY, "ada", image="a")
    new = {**live, "metadata": {"name": "web", "managedFields": sent}}
    assert "managedFields" not in FIELDS.update(live, new, manager="b", now="", empty=EMPTY)["metadata"]


def test_of_many_updaters_the_oldest_share_an_entry():
    live = applied(EMPTY, "ada", image="0")
    for number in range(1, 14):
        new = {**live, "spec": {**live["spec"], "set": [*live["spec"].get("set", []), f"{number:02}"]}}
        now = f"2030-01-01T00:00:{number:02}Z"
        live = FIELDS.update(live, new, manager=f"updater-{number:02}", now=now, empty=EMPTY)
    found = owners(live)
    assert len(found) == 11
    assert set(found) == {"ada", "ancient-changes", *(f"updater-{number:02}" for number in range(5, 14))}
    assert found["ancient-changes"][-1] == '.spec.set[="04"]'


def test_an_owner_in_another_version_is_compared_in_its_own():
    live = applied(EMPTY, "ada", image="a", replicas=1)
    live["metadata"]["managedFields"][0] |= {
        "apiVersion": "example.com/v0",
        "fieldsV1": {"f:spec": {"f:picture": {}, "f:replicas": {}}},
    }
    with pytest.raises(ApplyConflicts) as refused:
        applied(live, "ben", image="b")
    assert [format_path(each.path) for each in refused.value.conflicts] == [".spec.picture"]
    assert applied(live, "ada", image="a")["spec"] == {"image": "a"}


def test_an_object_that_does_not_fit_the_version_of_an_owner_cannot_be_written():
    live = applied(EMPTY, "ada", image="a", ports=[{"port": 1}])
    strict = FieldManager(TwoVersions(old=SCHEMA), api_version="example.com/v1")
    live["metadata"]["managedFields"][0]["apiVersion"] = "example.com/v0"
    with pytest.raises(SchemaMismatch, match="picture"):
        strict.apply(live, site(image="a"), manager="ben", now="", force=False, empty=EMPTY)
    with pytest.raises(SchemaMismatch, match="picture"):
        strict.update(live, {**live, "spec": {"image": "b"}}, manager="ben", now="", empty=EMPTY)


def test_an_owner_in_a_version_that_never_was_is_no_owner_that_can_be_asked():
    live = applied(EMPTY, "ada", image="a")
    live["metadata"]["managedFields"][0]["apiVersion"] = "other.example.com/v1"
    with pytest.raises(NotConvertible):
        applied(live, "ben", image="a")


def test_who_applies_in_two_versions_is_one_owner_and_who_updates_in_two_is_two():
    old = FieldManager(TwoVersions(), api_version="example.com/v0")
    start = applied(EMPTY, "ada", image="a", replicas=1)
    seen = TwoVersions().convert(start, "example.com/v0")
    given = {"apiVersion": "example.com/v0", "kind": "Site", "metadata": {"name": "web"}, "spec": {"picture": "a"}}
    again = old.apply(seen, given, manager="ada", now="", force=False, empty=EMPTY)
    assert [entry["apiVersion"] for entry in again["metadata"]["managedFields"]] == ["example.com/v0"]
    assert again["spec"] == {"picture": "a"}
    live = updated(start, "ben", image="b", replicas=1)
    seen = TwoVersions().convert(live, "example.com/v0")
    new = {**seen, "spec": {**seen["spec"], "replicas": 2}}
    entries = old.update(seen, new, manager="ben", now="", empty=EMPTY)["metadata"]["managedFields"]
    assert {(entry["manager"], entry["apiVersion"]) for entry in entries} == {
        ("ben", "example.com/v0"),
        ("ben", "example.com/v1"),
    }


def test_a_manager_owns_by_the_endpoint_that_it_used():
    status = FieldManager(TwoVersions(), api_version="example.com/v1", subresource="status")
    live = applied(EMPTY, "ada", image="a")
    live = status.apply(live, site(replicas=1), manager="ada", now="", force=False, empty=EMPTY)
    assert {entry.get("subresource", ""): entry["fieldsV1"] for entry in live["metadata"]["managedFields"]} == {
        "": {"f:spec": {"f:image": {}}},
        "status": {"f:spec": {"f:replicas": {}}},
    }
    assert live["spec"] == {"image": "a", "replicas": 1}


def test_true_is_another_value_than_one():
    free = FieldManager(TwoVersions(), api_version="example.com/v0")
    tree = {"apiVersion": "example.com/v0", "kind": "Site", "metadata": {"name": "web"}, "spec": {"free": [{"a": 1}]}}
    live = free.apply({}, tree, manager="ada", now="1", force=False, empty={})
    new = {**live, "spec": {"free": [{"a": True}]}}
    assert owners(free.update(live, new, manager="ben", now="2", empty={})) == {"ada": [".spec"], "ben": [".spec.free"]}


def test_owners_that_a_client_sends_are_written_as_kubernetes_writes_them():
    live = applied(EMPTY, "ada", image="a", ports=[{"port": 1}, {"port": 2}])
    sent = copy.deepcopy(live)
    entry = sent["metadata"]["managedFields"][0]
    entry["manager"] = "renamed"
    entry["fieldsV1"] = {
        "f:spec": {"f:ports": {'k:{"port": 2}': {"f:port": {}, ".": {}}}, "f:image": {}},
        "z:future": {},
    }
    found = FIELDS.update(live, sent, manager="b", now="", empty=EMPTY)["metadata"]["managedFields"]
    assert json.dumps([each["fieldsV1"] for each in found]) == json.dumps(
        [{"f:spec": {"f:image": {}, "f:ports": {'k:{"port":2}': {".": {}, "f:port": {}}}}}]
    )


def test_nothing_that_is_given_is_changed():
    live = applied(applied(EMPTY, "ada", image="a", ports=[{"port": 1}, {"port": 2}]), "ben", replicas=1)
    before, given = copy.deepcopy(live), site(image="b", ports=[{"port": 2, "name": "x"}])
    FIELDS.apply(live, given, manager="ada", now="", force=True, empty=EMPTY)
    FIELDS.update(live, given, manager="ben", now="", empty=EMPTY)
    assert (live, given) == (before, site(image="b", ports=[{"port": 2, "name": "x"}]))


def test_values_that_nest_too_deeply_are_refused():
    free = FieldManager(TwoVersions(), api_version="example.com/v0")
    deep: Any = {}
    for _ in range(2000):
        deep = {"a": deep}
    tree = {"apiVersion": "example.com/v0", "kind": "Site", "metadata": {"name": "web"}, "spec": deep}
    with pytest.raises(TooDeep):
        free.apply({}, tree, manager="ada", now="", force=False, empty={})
    with pytest.raises(TooDeep):
        free.update(None, tree, manager="ada", now="", empty={})


def test_owners_of_a_version_that_is_no_more_are_forgotten():
    live = applied(EMPTY, "ada", image="a")
    live["metadata"]["managedFields"][0]["apiVersion"] = "example.com/v1alpha1"
    assert owners(applied(live, "ben", image="b")) == {"ben": [".spec.image"]}


def test_an_item_that_is_there_twice_is_refused_and_healed_by_an_apply_of_it_once():
    with pytest.raises(SchemaMismatch, match=r"ports\[port=1\]: the item occurs twice"):
        applied(EMPTY, "ada", ports=[{"port": 1}, {"port": 1}])
    live = updated(applied(EMPTY, "ada", image="a"), "b", image="a", ports=[{"port": 1}, {"port": 1, "name": "x"}])
    assert owners(live)["b"] == [".spec.ports", ".spec.ports[port=1]"]
    live = applied(live, "ben", force=True, ports=[{"port": 1, "name": "one"}])
    assert live["spec"]["ports"] == [{"port": 1, "name": "one"}]


def test_kubectl_takes_over_from_its_client_side_apply():
    last = '{"apiVersion":"example.com/v1","kind":"Site","metadata":{"name":"web"},"spec":{"image":"a"}}'
    start = site(image="a")
    start["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": last}
    live = FIELDS.update(None, start, manager="kubectl-client-side-apply", now="2030-01-01T00:00:00Z", empty=EMPTY)
    with pytest.raises(ApplyConflicts):
        applied(live, "ada", image="b")
    taken = applied(live, "kubectl", image="b")
    assert taken["spec"] == {"image": "b"}
    kept = taken["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"]
    assert kept == last.replace('"a"', '"b"') + "\n"


def test_one_managers_intent_can_be_taken_out_of_an_object():
    live = applied(EMPTY, "ada", image="a", ports=[{"port": 1, "name": "one"}, {"port": 2}])
    live = applied(live, "ben", replicas=3, ports=[{"port": 2, "name": "two"}])
    wanted = site(replicas=3, ports=[{"port": 2, "name": "two"}])
    assert extract_applied_tree(live, manager="ben", schema=SCHEMA) == wanted
    assert applied(live, "ben", **wanted["spec"]) == live
    assert extract_applied_tree(live, manager="ben", subresource="status", schema=SCHEMA) == {
        "apiVersion": "example.com/v1",
        "kind": "Site",
        "metadata": {"name": "web"},
    }
