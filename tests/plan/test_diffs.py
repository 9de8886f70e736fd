"""What differs between two states of an object, in lines."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.plan.diffs import diff_lines, visible
from steersman.plan.trees import as_sent, merged


def lines(before: Any, after: Any) -> str:
    return "\n".join(map(str, diff_lines(before, after)))


def test_only_what_differs_is_shown_below_what_leads_there() -> None:
    before = {
        "spec": {"replicas": 2, "paused": False, "template": {"spec": {"dnsPolicy": "Default", "hostNetwork": True}}}
    }
    after = {"spec": {"replicas": 3, "paused": False, "template": {"spec": {"dnsPolicy": "Default", "hostPID": True}}}}
    assert (
        lines(before, after)
        == """\
  spec:
-   replicas: 2
+   replicas: 3
    template:
      spec:
-       hostNetwork: true
+       hostPID: true"""
    )


def test_items_are_known_by_their_names_wherever_they_stand() -> None:
    before = {"containers": [{"name": "web", "image": "a"}, {"name": "log", "image": "l"}]}
    after = {
        "containers": [{"name": "proxy", "image": "p"}, {"name": "log", "image": "l"}, {"name": "web", "image": "b"}]
    }
    assert (
        lines(before, after)
        == """\
  containers:
    - name: web
-     image: a
+     image: b
+   - name: proxy
+     image: p"""
    )
    turned = {"containers": list(reversed(before["containers"]))}
    assert lines(before, turned) == ""


def test_items_without_names_are_matched_by_their_content() -> None:
    assert lines({"args": ["a", "b", "c"]}, {"args": ["a", "c", "d"]}) == "  args:\n-   - b\n+   - d"
    before = {"rules": [{"verbs": ["get"]}, {"verbs": ["list"]}]}
    after = {"rules": [{"verbs": ["get"]}, {"verbs": ["list", "watch"]}]}
    assert lines(before, after) == "  rules:\n    - # item 2\n        verbs:\n+         - watch".replace(
        "        verbs", "      verbs"
    ).replace("+         -", "+       -")


def test_texts_are_compared_line_by_line() -> None:
    before = {"data": {"nginx.conf": "".join(f"line {number}\n" for number in range(20))}}
    after = {"data": {"nginx.conf": before["data"]["nginx.conf"].replace("line 9\n", "line nine\n")}}
    assert (
        lines(before, after)
        == """\
  data:
    nginx.conf: |
      line 7
      line 8
-     line 9
+     line nine
      line 10
      line 11"""
    )


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("web", "web"),
        ("nginx:1.27", "nginx:1.27"),
        ("8080", '"8080"'),
        ("true", '"true"'),
        ("", '""'),
        ("a: b", '"a: b"'),
        ("- a", '"- a"'),
        (None, "null"),
        (True, "true"),
        (1.5, "1.5"),
        ({}, "{}"),
        ([], "[]"),
        ("\x1b[31m", '"\\u001b[31m"'),
    ],
)
def test_values_read_as_yaml_does(value: Any, shown: str) -> None:
    assert lines({}, {"field": value}) == f"+ field: {shown}"


def test_what_the_server_keeps_for_itself_is_hidden() -> None:
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    metadata = {"name": "a", "resourceVersion": "1", "generation": 1, "uid": "u", "managedFields": [{}]}
    last = {"kubectl.kubernetes.io/last-applied-configuration": "{}"}
    before = {"metadata": metadata, "status": {"conditions": [condition]}}
    later = {**condition, "lastTransitionTime": "2026-01-02T00:00:00Z"}
    after = {
        "metadata": {**metadata, "resourceVersion": "2", "generation": 2, "managedFields": [], "annotations": last},
        "status": {"conditions": [later]},
    }
    one, other = visible(before, after)
    assert one == other == {"metadata": {"name": "a"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}


def test_values_of_a_secret_are_never_shown() -> None:
    def secret(**data: str) -> dict[str, Any]:
        return {"apiVersion": "v1", "kind": "Secret", "metadata": {}, "data": data, "stringData": {"plain": "hush"}}

    one, other = visible(secret(a="old", b="same", c="gone"), secret(a="new", b="same", d="fresh"))
    assert (
        lines(one, other)
        == """\
  data:
-   a: (hidden)
+   a: (changed)
-   c: (hidden)
+   d: (hidden)"""
    )
    shown = f"{one} {other} {one!r} {other!r}"
    assert not [word for word in ("old", "new", "same", "gone", "fresh", "hush") if word in shown]


def test_two_plans_for_one_object_are_one() -> None:
    base = {"spec": {"a": 1, "b": 1}, "status": {"conditions": [{"type": "X", "status": "False"}]}}
    planned = {"spec": {"a": 2, "b": 1}, "status": {"conditions": [{"type": "X", "status": "True"}]}}
    ready = {"type": "Y", "status": "True"}
    result = {"spec": {"a": 1}, "status": {"conditions": [{"type": "X", "status": "False"}, ready]}}
    conditions = [{"type": "X", "status": "True"}, ready]
    assert merged(base, planned, result) == {"spec": {"a": 2}, "status": {"conditions": conditions}}
    assert merged({}, {"status": {"conditions": [conditions[0]]}}, {"status": {"conditions": [ready]}}) == {
        "status": {"conditions": conditions}
    }


def test_of_what_is_created_the_defaults_of_the_server_are_left_out() -> None:
    sent = {"spec": {"ports": [{"port": 80}], "type": None}}
    answer = {"spec": {"ports": [{"port": 80, "protocol": "TCP"}], "type": "ClusterIP", "clusterIP": "10.0.0.1"}}
    assert as_sent(sent, answer) == {"spec": {"ports": [{"port": 80}], "type": "ClusterIP"}}
