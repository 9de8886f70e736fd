"""What an apply would leave as it is; the engine's own word on it is in tests/controller."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, strategies as st

from samples import intents
from steersman.kinds import definition, schema_of
from steersman.objects import Kind
from steersman.patches import MergeSchema, applied_set, changes_nothing, projection


def merging(kind: str) -> MergeSchema:
    found = schema_of(Kind(intents.POOLS[kind][0], kind).gvk())
    return MergeSchema(found, resolve=lambda name: definition(name.rpartition("/")[2]))


SCHEMAS = {kind: merging(kind) for kind in intents.POOLS if kind != "Site"}


@st.composite
def two_intents(draw: st.DrawFn) -> tuple[str, dict[str, Any], dict[str, Any]]:
    kind = draw(st.sampled_from(sorted(SCHEMAS)))
    paths = intents.pool(kind)
    first = {path: draw(st.sampled_from(values)) for path, values in paths.items()}
    second = first | {
        path: draw(st.sampled_from(paths[path])) for path in draw(st.sets(st.sampled_from(sorted(paths))))
    }
    return kind, intents.intent(kind, first, "n", "o"), intents.intent(kind, second, "n", "o")


@given(two_intents())
def test_owning_anything_else_than_what_is_applied_is_a_change(
    drawn: tuple[str, dict[str, Any], dict[str, Any]],
) -> None:
    """An object that holds every value as it is applied stays so exactly if its owner's entry is the applied set."""
    kind, intent, other = drawn
    schema = SCHEMAS[kind]
    ours, theirs = applied_set(intent, schema), applied_set(other, schema)
    live = copy.deepcopy(intent)
    if "stringData" in live:
        return  # stored as something else: seen on the engine
    assert changes_nothing(intent, live, ours.to_json(), schema, typed=False)
    assert changes_nothing(intent, live, theirs.to_json(), schema, typed=False) is (ours == theirs)
    assert intent == live


def deployment(**container: Any) -> dict[str, Any]:
    containers = [{"name": "web", "image": "nginx", **container}]
    return {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"template": {"spec": {"containers": containers}}}}


def unchanged(intent: dict[str, Any], live: dict[str, Any], *, typed: bool = True) -> bool:
    schema = SCHEMAS[intent["kind"]]
    return changes_nothing(intent, live, applied_set(intent, schema).to_json(), schema, typed=typed)


@pytest.mark.parametrize(
    ("wanted", "held", "same"),
    [
        ({"resources": {"limits": {"cpu": "1000m"}}}, {"resources": {"limits": {"cpu": "1"}}}, True),
        # the same amount, and another text: the server would write it down
        ({"resources": {"limits": {"memory": "1073741824"}}}, {"resources": {"limits": {"memory": "1Gi"}}}, False),
        ({"env": [{"name": "A", "value": ""}]}, {"env": [{"name": "A"}]}, True),
        ({"env": [{"name": "A", "value": ""}]}, {"env": [{"name": "A", "value": "1"}]}, False),
        ({"env": [{"name": "A"}, {"name": "B"}]}, {"env": [{"name": "A"}, {"name": "X"}, {"name": "B"}]}, True),
        ({"env": [{"name": "A"}, {"name": "B"}]}, {"env": [{"name": "B"}, {"name": "A"}]}, False),
        ({"securityContext": {}}, {}, False),
        ({"command": []}, {}, True),
        ({"command": ["a"]}, {"command": ["a", "b"]}, False),
        ({"ports": [{"containerPort": 80}]}, {"ports": [{"containerPort": 80, "protocol": "TCP"}]}, True),
        ({"ports": [{"containerPort": 80}]}, {"ports": [{"containerPort": 80, "protocol": "UDP"}]}, False),
        ({"livenessProbe": {"httpGet": {"port": 80}}}, {"livenessProbe": {"httpGet": {"port": "80"}}}, False),
        ({"unheardOf": 1}, {"unheardOf": 1}, None),
    ],
)
def test_values_count_as_held_in_the_form_in_which_the_server_prints_them(
    wanted: dict[str, Any], held: dict[str, Any], same: Any
) -> None:
    intent, live = deployment(**wanted), deployment(**held)
    if same is None:
        owned = applied_set(deployment(), SCHEMAS["Deployment"]).to_json()
        assert not changes_nothing(intent, live, owned, SCHEMAS["Deployment"], typed=True)
    else:
        assert unchanged(intent, live) is same


def test_custom_resources_are_compared_as_they_are() -> None:
    intent, live = (deployment(resources={"limits": {"cpu": text}}) for text in ("1000m", "1"))
    assert not unchanged(intent, live, typed=False)


def test_who_names_a_version_or_a_uid_asks_the_server() -> None:
    intent = deployment() | {"metadata": {"name": "web", "uid": "u"}}
    assert not unchanged(intent, intent)


def test_a_projection_sees_what_is_owned_and_nothing_else() -> None:
    schema = SCHEMAS["Deployment"]
    intent = deployment(env=[{"name": "A", "value": "1"}, {"name": "B", "value": "2"}], command=["x"])
    owned = applied_set(intent, schema).to_json()
    base = projection(intent, owned)
    assert projection(deployment(**_container(intent), tty=True), owned) == base
    for changed in ({"command": ["y"]}, {"env": _container(intent)["env"][::-1]}, {"image": "httpd"}, {"env": []}):
        assert projection(deployment(**(_container(intent) | changed)), owned) != base


def test_a_projection_of_a_secret_sees_what_its_texts_became() -> None:
    owned = {"f:stringData": {"f:a": {}}}
    one, other = ({"data": {"a": value, "b": value}} for value in ("YQ==", "Yg=="))
    assert projection(one, owned) != projection(other, owned)
    assert projection(one, owned) == projection({"data": {"a": "YQ==", "b": "x"}}, owned)


def _container(tree: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in tree["spec"]["template"]["spec"]["containers"][0].items() if name != "name"}
