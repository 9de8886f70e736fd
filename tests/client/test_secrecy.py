"""No secret is shown: not by an object, not by an error, not in a log."""

from __future__ import annotations

import asyncio
import base64
import copy
import dataclasses
import json
import logging
import pickle
import pprint
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import HealthCheck, given, settings, strategies as st

from steersman.client import Client, RetryPolicy
from steersman.client.configuration.config import BasicAuth, BearerToken, Config, ExecPlugin, TokenFile
from steersman.client.configuration.kubeconfig import Kubeconfig, load_kubeconfig, parse_kubeconfig, read_kubeconfig
from steersman.client.configuration.secrecy import Hidden, hide_password, printable
from steersman.client.credentials.credentials import ClientCertificate, StaticCredentials
from steersman.client.credentials.exec_plugin import ExecCredentials
from steersman.client.credentials.identity import credentials_for
from steersman.errors import ApiError, ConfigError, CredentialsError
from steersman.kinds.core_v1 import ConfigMap, Secret
from steersman.objects import ObjectMeta
from steersman.transport import HttpListener, ServerResponse
from steersman.wire import HttpRequest

SECRETS = {
    "token": "tok-OPENSESAME1",
    "password": "pwd-OPENSESAME2",
    "key": "-----BEGIN PRIVATE KEY-----\nkey-OPENSESAME3\n-----END PRIVATE KEY-----\n",
    "argument": "arg-OPENSESAME4",
    "variable": "env-OPENSESAME5",
    "proxy": "pxy-OPENSESAME6",
}
PEM = "-----BEGIN CERTIFICATE-----\nbm90IHJlYWw=\n-----END CERTIFICATE-----\n"


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def assert_hidden(text: str) -> None:
    # The words that all planted secrets share, as they are, as base64 (which depends on the position), and reversed.
    marks = ["OPENSESAME", "EMASESNEPO"]
    marks += [encoded("x" * shift + "OPENSESAME")[4:-4] for shift in (1, 2, 3)]
    for mark in [*marks, encoded("OPENSESAME")[:-4]]:
        assert mark not in text


@pytest.mark.parametrize("before", ["", "a", "ab", "abc"])
def test_the_check_finds_what_it_looks_for(before: str) -> None:
    for leak in (before + "OPENSESAME1", encoded(before + "OPENSESAME1 and more"), (before + "OPENSESAME1")[::-1]):
        with pytest.raises(AssertionError):
            assert_hidden(f"it was {leak}!")


def users() -> dict[str, dict[str, Any]]:
    return {
        "token": {"token": SECRETS["token"]},
        "basic": {"username": "jane", "password": SECRETS["password"]},
        "key": {"client-certificate-data": encoded(PEM), "client-key-data": encoded(SECRETS["key"])},
        "exec": {
            "exec": {
                "apiVersion": "client.authentication.k8s.io/v1",
                "command": "no-such-plugin",
                "interactiveMode": "Never",
                "provideClusterInfo": True,
                "args": ["--secret", SECRETS["argument"]],
                "env": [{"name": "CLIENT_SECRET", "value": SECRETS["variable"]}],
            }
        },
    }


def kubeconfig() -> dict[str, Any]:
    proxy = f"http://jane:{SECRETS['proxy']}@proxy:3128"
    return {
        "current-context": "token",
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:6443", "proxy-url": proxy}}],
        "users": [{"name": name, "user": user} for name, user in users().items()],
        "contexts": [{"name": name, "context": {"cluster": "c", "user": name}} for name in users()],
    }


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(kubeconfig()))
    return path


def parts_of(thing: object) -> Iterator[object]:
    """A thing and everything in it that is one of our own objects."""
    yield thing
    if dataclasses.is_dataclass(thing):
        for field in dataclasses.fields(thing):
            yield from parts_of(getattr(thing, field.name))
    elif isinstance(thing, tuple | list):
        for item in thing:
            yield from parts_of(item)


def shown(thing: object) -> Iterator[str]:
    """Every way to turn a thing into text that people use, on purpose or by accident."""
    yield repr(thing)
    yield str(thing)
    yield f"{thing}"
    yield f"{thing!s:>40}"
    yield f"{thing!r:.5}"
    yield "%s %r" % (thing, thing)  # noqa: UP031
    yield pprint.pformat(thing)
    yield repr([thing])
    yield repr(copy.copy(thing))
    yield repr(copy.deepcopy(thing))
    yield "".join(traceback.format_exception(ValueError(thing)))
    for dump in (pickle.dumps, json.dumps, msgspec.json.encode):
        try:
            dump(thing)
        except Exception as error:  # noqa: BLE001
            yield "".join(traceback.format_exception(error))


def our_objects(file: Path) -> list[object]:
    merged = read_kubeconfig(file)
    configs = [merged.config(name) for name in users()]
    assert [type(config.auth) for config in configs] == [BearerToken, BasicAuth, type(None), ExecPlugin]
    token_file = Config("https://a", auth=TokenFile("/nowhere", fallback=Hidden(SECRETS["token"])))
    every = [*configs, token_file]
    pair = ClientCertificate(PEM.encode(), Hidden(SECRETS["key"].encode()))
    entries = [*merged.clusters.values(), *merged.users.values(), *merged.contexts.values()]
    return [merged, *entries, *every, *[credentials_for(config) for config in every], pair, Hidden(SECRETS["token"])]


def test_no_object_shows_its_secret(file: Path) -> None:
    for thing in our_objects(file):
        for part in parts_of(thing):
            # A name or a bytes field on its own is the value itself; only our objects can hide.
            if type(part).__module__.startswith("steersman."):
                for text in shown(part):
                    assert_hidden(text)


def test_the_secrets_are_there_all_the_same(file: Path) -> None:
    """What hides everything by having lost it would pass the other tests."""
    merged = read_kubeconfig(file)
    token, basic, key, plugin = (merged.config(name) for name in users())
    assert isinstance(token.auth, BearerToken)
    assert token.auth.token.reveal() == SECRETS["token"]
    assert isinstance(basic.auth, BasicAuth)
    assert basic.auth.password.reveal() == SECRETS["password"]
    assert key.tls.key_data == SECRETS["key"].encode()
    assert isinstance(plugin.auth, ExecPlugin)
    assert plugin.auth.args[1].reveal() == SECRETS["argument"]
    assert plugin.auth.env[0][1].reveal() == SECRETS["variable"]
    assert plugin.proxy_url is not None
    assert SECRETS["proxy"] in plugin.proxy_url.reveal()


def test_a_configuration_is_still_told_apart(file: Path) -> None:
    config = load_kubeconfig(file)
    assert "https://127.0.0.1:6443" in repr(config)
    assert "http://<hidden>@proxy:3128" in repr(config)
    assert "BearerToken(token=<hidden>)" in repr(config)
    assert f'context "token" of {file}' in repr(config)


def faults() -> Iterator[Any]:
    """Kubeconfigs that are wrong somewhere near a secret."""
    for name, user in users().items():
        for key, value in user.items():
            for wrong in ([value], {"x": value}, {SECRETS["token"]: value}, 7, True, f"\n{value}"):
                content = kubeconfig() | {"current-context": name}
                content["users"] = [{"name": name, "user": user | {key: wrong}}]
                yield content
    for extra in (
        {"token": SECRETS["token"], "username": "a", "password": SECRETS["password"]},
        {"token": SECRETS["token"], "auth-provider": {"name": "gcp", "config": {"access-token": SECRETS["token"]}}},
        {"client-certificate": encoded(SECRETS["key"]) * 5, "client-key": "x"},
        {"client-certificate-data": encoded(PEM), "client-key": encoded(SECRETS["key"]) * 5},
        {"tokenFile": SECRETS["token"] * 20},
        {"client-certificate-data": encoded(PEM), "client-key-data": SECRETS["key"]},
        {"client-certificate-data": encoded(PEM), "client-key-data": encoded(SECRETS["token"])},
        {"client-certificate-data": encoded(SECRETS["key"]), "client-key-data": encoded("nothing")},
        {"exec": {"command": "x", "env": [SECRETS["variable"]], "args": {"a": SECRETS["argument"]}}},
        {"exec": users()["exec"]["exec"] | {"env": [{"name": f"A={SECRETS['variable']}"}]}},
        {"exec": users()["exec"]["exec"] | {"args": [SECRETS["argument"], 7]}},
    ):
        yield kubeconfig() | {"users": [{"name": "token", "user": extra}]}
    yield kubeconfig() | {"users": kubeconfig()["users"] * 2}
    for server in ("https://a:{}@b", "ftp://a:{}@b", "a:{}@b", "https://a:{}@[b", "https://a:{}@b:99999"):
        for field in ("server", "proxy-url"):
            content = kubeconfig()
            content["clusters"][0]["cluster"][field] = server.format(SECRETS["proxy"])
            yield content
    text = yaml.safe_dump(kubeconfig())
    for place in range(0, len(text), 7):
        yield text[:place] + "\t{[&" + text[place:]
        yield text[:place]


def test_no_error_shows_a_secret(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    file = tmp_path / "config"
    failed = 0
    for content in faults():
        file.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
        try:
            config = load_kubeconfig(file)
            credentials_for(config)
        except ConfigError as error:
            failed += 1
            assert_hidden("".join(traceback.format_exception(error)))
        else:
            assert_hidden(repr(config))
    assert failed > 100
    assert_hidden(caplog.text)


@settings(max_examples=200, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_no_damage_brings_a_secret_into_an_error(data: st.DataObject) -> None:
    text = yaml.safe_dump(kubeconfig()).encode()
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(text)))
        wide = data.draw(st.integers(0, 12))
        text = (
            text[:place]
            + data.draw(st.sampled_from([b"", b"\n", b"'", b'"', b": ", b"- ", b"*", b"&a ", b"!", b"%", b"\xff"]))
            + text[place + wide :]
        )
    try:
        parse_kubeconfig(text, context=data.draw(st.sampled_from([*users()])))
    except ConfigError as error:
        # Only a quote that begins elsewhere can make a secret part of a name.
        assert_hidden(str(error))


async def test_no_log_line_of_a_plugin_shows_a_secret(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    plugin = file.parent / "no-such-plugin"
    plugin.write_text(f"#!/bin/sh\nprintf '%s' '{SECRETS['token']}'\nexit \"$1\"\n")
    plugin.chmod(0o700)
    asyncio.get_running_loop().set_debug(True)
    try:
        for code in ("0", "1"):
            runner = ExecPlugin(
                str(plugin), [code, SECRETS["argument"]], env=[("A", SECRETS["variable"])], interactive_mode="Never"
            )
            credentials = ExecCredentials(runner)
            with pytest.raises(CredentialsError) as caught:
                await credentials.headers()
            assert_hidden("".join(traceback.format_exception(caught.value)))
            assert_hidden(repr(vars(credentials)))
    finally:
        asyncio.get_running_loop().set_debug(False)
    assert_hidden(caplog.text)


async def test_no_frame_of_a_failed_request_holds_a_token_or_a_secret_that_prints() -> None:
    """Error trackers print the locals of every frame of a traceback."""

    async def refuse(request: HttpRequest) -> ServerResponse:
        return ServerResponse(status=302 if request.method == "POST" else 401, headers=(("Location", "/"),))

    async with HttpListener(refuse) as listener:
        for server in ("http://127.0.0.1:1", listener.address):
            config = Config(server, auth=BearerToken(SECRETS["token"]))
            async with Client.connect(config, field_manager="tests", retry=RetryPolicy(attempts=1)) as client:
                metadata = ObjectMeta(name="x", namespace="default", resource_version="1")
                config_map = ConfigMap(metadata=metadata, data={"a": "b"})
                intent = ConfigMap(metadata=ObjectMeta(name="x", namespace="default"), data={"a": "b"})
                hidden = {"p": SECRETS["token"]}
                secret = Secret(metadata=ObjectMeta(name="x", namespace="default"), string_data=hidden)
                read = Secret(metadata=metadata, string_data=hidden)
                hidden = {}
                requests = (
                    lambda client=client: client.get(ConfigMap, "default/x"),
                    lambda client=client, one=config_map: client.update(one),
                    lambda client=client, one=intent: client.apply(one),
                    lambda client=client, one=intent: client.create(one),
                    lambda client=client, one=secret: client.create(one),
                    lambda client=client, one=read: client.update(one),
                    lambda client=client, one=secret: client.apply(one),
                )
                for send in requests:
                    with pytest.raises(ApiError) as caught:
                        await send()
                    shown = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
                    assert_hidden("".join(shown.format()))


def test_hidden_values_compare_and_hash_by_value() -> None:
    assert Hidden("a") == Hidden("a")
    assert Hidden("a") != Hidden("b")
    assert Hidden("a") != Hidden(b"a")
    assert Hidden("a") != "a"
    assert len({Hidden("a"), Hidden("a"), Hidden("ä")}) == 2
    assert not Hidden("")
    assert f"{Hidden('a'):>10}|" == "  <hidden>|"


def test_hidden_values_are_not_pickled() -> None:
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(TypeError, match="cannot be pickled"):
            pickle.dumps(Hidden(SECRETS["token"]), protocol)


def test_an_unreadable_token_names_only_what_it_is() -> None:
    with pytest.raises(CredentialsError) as caught:
        credentials_for(Config("https://a", auth=BearerToken(f"{SECRETS['token']}\nx")))
    assert_hidden(str(caught.value))
    assert_hidden(repr(StaticCredentials((("Authorization", f"Bearer {SECRETS['token']}"),))))


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://a.b:6443/c", "https://a.b:6443/c"),
        ("http://u:p@a:1/c?d", "http://<hidden>@a:1/c?d"),
        ("http://u:p@q@a", "http://<hidden>@a"),
        ("u:p@a:1", "<hidden>"),
        ("http://u:p@[a", "<hidden>"),
        ("", ""),
    ],
)
def test_passwords_in_addresses_are_hidden(url: str, expected: str) -> None:
    assert hide_password(url) == expected


def test_foreign_text_cannot_command_a_terminal() -> None:
    assert printable("\x1b]0;title\x07 ok\ttab\nline\u202e") == "U+001B]0;titleU+0007 ok\ttab\nlineU+202E"
    assert printable("a" * 50 + "end", limit=10) == "..." + "aaaaaaaend"


def test_a_merged_kubeconfig_tells_its_contexts_only(file: Path) -> None:
    merged = read_kubeconfig(file)
    assert isinstance(merged, Kubeconfig)
    assert repr(merged) == f"<Kubeconfig of {file}: The contexts are: basic, exec, key, token>"
