"""What is dumped is stable, says what was meant, and is read back."""

from __future__ import annotations

import json
import subprocess

import pytest
from hypothesis import example, given, strategies as st

from steersman import ObjectMeta, Unstructured
from steersman.kinds.core_v1 import ConfigMap, Service, ServicePort, ServiceSpec, ServiceStatus
from steersman.manifests import dump_manifests, load_manifests
from steersman.objects import encode_any
from steersman.testing.engine.environment import Environment

KEY = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
    | st.sampled_from(["on", "y", "010", "1e3", "0o7", "1_000", "0X1F", "~", "null", "", "=", "<<", "a\nb\n", " a", "a: b", "#"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEY, inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


def widget(spec: object) -> Unstructured:
    return Unstructured({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": spec})


@given(VALUES)
@example("\x85")
@example("a\u2028b\n")
def test_what_is_dumped_is_read_back(value: object) -> None:
    (found,) = load_manifests(dump_manifests([widget(value)]))
    assert json.dumps(found.tree["spec"], sort_keys=True) == json.dumps(_read(value), sort_keys=True)


def _read(value: object) -> object:
    """A whole number is an integer: YAML has one sort of number, as JSON has."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 2**63 else value
    if isinstance(value, list):
        return [_read(each) for each in value]
    return {name: _read(each) for name, each in value.items()} if isinstance(value, dict) else value


def test_fields_are_sorted_and_those_of_the_server_are_left_out() -> None:
    service = Service(
        metadata=ObjectMeta(name="web", uid="1", resource_version="5", generation=2, labels={"b": "1", "a": "on"}),
        spec=ServiceSpec(ports=[ServicePort(port=80)]),
        status=ServiceStatus(),
    )
    text = dump_manifests([service, ConfigMap(metadata=ObjectMeta(name="page"), data={"index.html": "<p>\n</p>\n"})])
    assert text == (
        "---\napiVersion: v1\nkind: Service\nmetadata:\n  labels:\n    a: 'on'\n    b: '1'\n  name: web\n"
        "spec:\n  ports:\n  - port: 80\n"
        "---\napiVersion: v1\ndata:\n  index.html: |\n    <p>\n    </p>\nkind: ConfigMap\nmetadata:\n  name: page\n"
    )  # fmt: skip
    assert [each.key.name for each in load_manifests(text)] == ["web", "page"]
    (whole,) = load_manifests(dump_manifests([service], server_fields=True))
    assert encode_any(whole) != encode_any(load_manifests(text)[0])
    assert whole == service
    assert service.status is not None


def test_no_objects_are_an_empty_text() -> None:
    assert dump_manifests([]) == ""


def test_an_object_that_was_read_is_dumped_with_fields_that_its_class_lacks() -> None:
    (found,) = load_manifests("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\nnewer: [1]\n", strict=False)
    assert dump_manifests([found]).endswith("newer:\n- 1\n")


@pytest.mark.parametrize("shared", [{"a": ["on"]}])
def test_kubectl_reads_the_same(shared: dict[str, object]) -> None:
    """Strings that Go's YAML takes for something else are quoted, and values that appear twice have no anchors."""
    spec = {
        "words": ["on", "y", "1e3", "0o7", "1_000", "0X1F", "2001-01-01", "1:30", "="],
        "one": shared,
        "two": shared,
    }
    text = dump_manifests([widget(spec)])
    assert "&" not in text
    program = Environment.read().program("kubectl")
    shown = subprocess.run(
        [program, "annotate", "--local", "-f", "-", "a=b", "-o", "json"],
        input=text,
        text=True,
        capture_output=True,
        check=True,
    )
    assert json.loads(shown.stdout)["spec"] == spec
