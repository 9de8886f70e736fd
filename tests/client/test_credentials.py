"""Tokens, passwords, token files and impersonation, as the headers of a request."""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from steersman.client.configuration.config import BasicAuth, BearerToken, Config, ExecPlugin, Impersonation, TokenFile
from steersman.client.credentials.exec_plugin import ExecCredentials
from steersman.client.credentials.identity import credentials_for
from steersman.client.credentials.token_file import TokenFileCredentials
from steersman.errors import ConfigError, CredentialsError

SERVER = "https://127.0.0.1:6443"


class ClockedLoop(asyncio.SelectorEventLoop):
    """A loop whose time can be moved ahead."""

    ahead = 0.0

    def time(self) -> float:
        return super().time() + self.ahead


def run(test: Callable[[ClockedLoop], Coroutine[Any, Any, None]]) -> None:
    loop = ClockedLoop()
    try:
        loop.run_until_complete(test(loop))
    finally:
        loop.close()


def bearer(token: str) -> tuple[tuple[str, str], ...]:
    return (("Authorization", f"Bearer {token}"),)


async def test_nothing_is_sent_without_credentials() -> None:
    credentials = credentials_for(Config(SERVER))
    assert await credentials.headers() == ()
    assert await credentials.client_certificate() is None


async def test_a_token_stays_after_it_was_refused() -> None:
    credentials = credentials_for(Config(SERVER, auth=BearerToken(" sesame\n")))
    assert await credentials.headers() == bearer("sesame")
    credentials.invalidate(bearer("sesame"))
    assert await credentials.headers() == bearer("sesame")


async def test_a_password_is_encoded_with_its_user() -> None:
    headers = await credentials_for(Config(SERVER, auth=BasicAuth("jane", "pä:ss"))).headers()
    assert headers == (("Authorization", "Basic " + base64.b64encode("jane:pä:ss".encode()).decode()),)


@pytest.mark.parametrize(
    "auth", [BearerToken("a\r\nX: y"), BearerToken("a b"), BearerToken("ä"), BearerToken(" "), BasicAuth("a:b", "c")]
)
def test_what_a_header_cannot_carry_is_refused(auth: BearerToken | BasicAuth) -> None:
    with pytest.raises(CredentialsError):
        credentials_for(Config(SERVER, auth=auth))


def test_an_exec_plugin_becomes_its_runner() -> None:
    assert isinstance(credentials_for(Config(SERVER, auth=ExecPlugin("x"))), ExecCredentials)


# -- impersonation


async def test_impersonation_is_added_to_the_credentials() -> None:
    who = Impersonation(
        user="jane", uid="7", groups=("a", "b"), extra=(("Acme.com/Rôle %", ("x", "y")), ("scopes", ()))
    )
    headers = await credentials_for(Config(SERVER, auth=BearerToken("sesame"), impersonation=who)).headers()
    assert headers == (
        ("Authorization", "Bearer sesame"),
        ("Impersonate-User", "jane"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
        ("Impersonate-Extra-Acme.com%2FR%C3%B4le%20%25", "x"),
        ("Impersonate-Extra-Acme.com%2FR%C3%B4le%20%25", "y"),
    )


def test_impersonation_needs_a_user_and_values_that_fit_a_header() -> None:
    with pytest.raises(ConfigError, match="needs a user"):
        Impersonation(user="", groups=("a",))
    with pytest.raises(CredentialsError, match="Impersonate-Group"):
        credentials_for(Config(SERVER, impersonation=Impersonation(user="jane", groups=("a\r\nX: y",))))


def test_a_refusal_reaches_the_credentials_behind_impersonation(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("one")

    async def test(_: ClockedLoop) -> None:
        config = Config(SERVER, auth=TokenFile(str(file)), impersonation=Impersonation(user="jane"))
        credentials = credentials_for(config)
        refused = await credentials.headers()
        file.write_text("two")
        assert await credentials.headers() == refused
        credentials.invalidate(refused)
        assert (await credentials.headers())[0] == bearer("two")[0]

    run(test)


# -- token files


@pytest.fixture
def token(tmp_path: Path) -> Path:
    """A token as the kubelet mounts it: token -> ..data/token, ..data -> a folder with a time in its name."""
    for name, content in (("..2030", "one\n"), ("..2031", "two\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "token").write_text(content)
    (tmp_path / "..data").symlink_to("..2030")
    (tmp_path / "token").symlink_to("..data/token")
    return tmp_path / "token"


def swap(token: Path) -> None:
    """Replace the token as the kubelet does."""
    (token.parent / "..data_tmp").symlink_to("..2031")
    (token.parent / "..data_tmp").rename(token.parent / "..data")


def vanish(token: Path) -> None:
    token.unlink()


def test_a_token_file_is_read_again_after_some_time(token: Path) -> None:
    async def test(loop: ClockedLoop) -> None:
        credentials = TokenFileCredentials(TokenFile(str(token), reread_after=60))
        assert await credentials.headers() == bearer("one")
        swap(token)
        loop.ahead = 50
        assert await credentials.headers() == bearer("one")
        loop.ahead = 61
        assert await credentials.headers() == bearer("two")

    run(test)


def test_a_token_file_is_read_again_when_the_token_was_refused(token: Path) -> None:
    async def test(_: ClockedLoop) -> None:
        credentials = TokenFileCredentials(TokenFile(str(token)))
        refused = await credentials.headers()
        swap(token)
        credentials.invalidate(refused)
        assert await credentials.headers() == bearer("two")
        # A late answer to a request with the old token does not cost a reading.
        (token.parent / "..2031" / "token").write_text("three")
        credentials.invalidate(refused)
        assert await credentials.headers() == bearer("two")
        credentials.invalidate()
        assert await credentials.headers() == bearer("three")

    run(test)


def test_a_token_file_that_vanishes_leaves_its_last_token_until_that_is_refused(
    token: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def test(loop: ClockedLoop) -> None:
        credentials = TokenFileCredentials(TokenFile(str(token)))
        headers = await credentials.headers()
        vanish(token)
        loop.ahead = 61
        assert await credentials.headers() == headers
        assert await credentials.headers() == headers
        assert caplog.text.count("No such file") == 1
        assert "one" not in caplog.text.replace("token file", "")
        credentials.invalidate(headers)
        with pytest.raises(CredentialsError, match="No such file"):
            await credentials.headers()

    run(test)


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"", "empty"), (b" \n", "empty"), (b"two words", "not a valid header value"), (b"\xff\xfe", "not a valid header value"), (b"x" * (2 << 20), "longer than")],
)  # fmt: skip
def test_a_useless_token_file_is_named(tmp_path: Path, content: bytes, said: str) -> None:
    file = tmp_path / "token"
    file.write_bytes(content)

    async def test(_: ClockedLoop) -> None:
        with pytest.raises(CredentialsError, match=said) as caught:
            await TokenFileCredentials(TokenFile(str(file))).headers()
        assert str(file) in str(caught.value)
        assert len(str(caught.value)) < 1000

    run(test)


def test_a_token_stands_in_while_the_file_cannot_be_read(tmp_path: Path) -> None:
    async def test(loop: ClockedLoop) -> None:
        fallback = BearerToken("fallback").token
        credentials = TokenFileCredentials(TokenFile(str(tmp_path / "token"), fallback=fallback))
        assert await credentials.headers() == bearer("fallback")
        (tmp_path / "token").write_text("one")
        loop.ahead = 61
        assert await credentials.headers() == bearer("one")

    run(test)


def test_a_token_file_that_is_no_file_does_not_hold_the_loop_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "token")

    async def test(_: ClockedLoop) -> None:
        with pytest.raises(CredentialsError, match="not a regular file"):
            await TokenFileCredentials(TokenFile(str(tmp_path / "token"))).headers()

    run(test)
