"""Secret values are in no text, in whatever form."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from steersman.golang import quoted_in_full
from steersman.objects.secret_values import HIDDEN, Redaction, hide, is_secret_name


@pytest.mark.parametrize(
    "name",
    ["password", "dbPassword", "DB_PASSWD", "apiKey", "api_key", "token", "clientSecret", "privateKey", "tokens"],
)
def test_names_of_secrets(name: str):
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name", ["secretName", "secretKeyRef", "tokenExpirationSeconds", "key", "name", "imagePullSecretNames", "tokenPath"]
)
def test_names_that_only_look_so(name: str):
    """Messages about a reference to a Secret must still name it."""
    assert not is_secret_name(name)


def test_what_is_hidden():
    """Values of Secrets and of fields named as secret; references, switches and empty values are shown."""
    secret = {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": {"a": "eA=="}, "stringData": {"b": 7}}
    assert hide(secret) == secret | {"data": {"a": HIDDEN}, "stringData": {"b": HIDDEN}}
    spec = {
        "password": "x",
        "secretRef": {"name": "pw"},
        "automountServiceAccountToken": True,
        "token": "",
        "env": [{"name": "DB_PASSWORD", "value": "x"}, {"name": "HOST", "value": "y"}],
        "tokens": ["a", "b"],
    }
    shown = hide({"kind": "Database", "spec": spec})["spec"]
    assert shown == spec | {
        "password": HIDDEN,
        "env": [{"name": "DB_PASSWORD", "value": HIDDEN}, {"name": "HOST", "value": "y"}],
        "tokens": [HIDDEN, HIDDEN],
    }
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "x"}}
    assert hide(config_map) == config_map
    applied = {"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "all of it"}}}
    assert "all of it" not in str(hide(applied))
    assert hide("x", field="data.password", secret=True) == hide("x", field="spec.password") == HIDDEN
    assert hide("x", field="data.password") == HIDDEN
    assert hide("x", field="data.host") == "x"


def forms(value: str) -> list[str]:
    encoded = base64.b64encode(value.encode()).decode()
    return [
        value,
        encoded,
        json.dumps(value),
        json.dumps(value, ensure_ascii=False),
        quoted_in_full(value),
        repr(value),
    ]


@given(
    value=st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), min_size=4, max_size=60).filter(str.strip)
)
def test_no_form_of_a_value_is_shown(value: str):
    bodies: list[tuple[Any, bool]] = [
        ({"stringData": {"pw": value}}, True),
        ({"data": {"pw": base64.b64encode(value.encode()).decode()}}, True),
        ({"spec": {"password": value}}, False),
        ([{"op": "add", "path": "/data/pw", "value": base64.b64encode(value.encode()).decode()}], True),
        ([{"op": "add", "path": "/spec/password", "value": value}], False),
    ]
    for body, secret in bodies:
        redaction = Redaction(json.dumps(body).encode(), secret=secret)
        for form in forms(value):
            assert form.strip("\"'") not in redaction(f"got: {form} here").replace(HIDDEN, "\0")


def test_numbers_and_short_values_are_hidden_as_words():
    redaction = Redaction({"stringData": {"pin": 90210, "bit": "a"}}, secret=True)
    assert redaction("got Value:90210} of a kind, as text") == f"got Value:{HIDDEN}}} of {HIDDEN} kind, as text"


def test_a_value_that_the_server_cut_is_hidden():
    value = "correct-horse-battery-staple"
    assert Redaction({"spec": {"password": value}})(f'bad: "{value[:15]}..."') == f'bad: "{HIDDEN}..."'
