"""Exec plugins: real programs that print credentials."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import pty
import select
import subprocess
import sys
import textwrap
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal, TypeVar

import pytest
import yaml

from steersman.aio import bind
from steersman.client.configuration.config import ExecPlugin
from steersman.client.configuration.kubeconfig import load_kubeconfig
from steersman.client.credentials.exec_plugin import ExecCredentials
from steersman.client.credentials.identity import credentials_for
from steersman.errors import CredentialsError
from steersman.testing.engine.environment import Environment

T = TypeVar("T")

V1 = "client.authentication.k8s.io/v1"
V1BETA1 = "client.authentication.k8s.io/v1beta1"
START = datetime(2030, 1, 1, tzinfo=UTC)


class ClockedLoop(asyncio.SelectorEventLoop):
    """A loop whose time, and whose wall time, can be moved ahead."""

    ahead = 0.0

    def time(self) -> float:
        return super().time() + self.ahead

    def now(self) -> datetime:
        return START + timedelta(seconds=self.ahead)


def run(test: Callable[[ClockedLoop], Coroutine[Any, Any, T]]) -> T:
    """Run `test` on a loop of its own; it must leave no task and no open file behind."""
    loop = ClockedLoop()
    bind(loop, clock=loop, seed=1)
    before = len(list(Path("/proc/self/fd").iterdir()))
    try:
        result = loop.run_until_complete(test(loop))
        assert not asyncio.all_tasks(loop)
        loop.run_until_complete(asyncio.sleep(0))
        assert len(list(Path("/proc/self/fd").iterdir())) <= before + 1  # the folder that is being listed
        return result
    finally:
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


def expiry(seconds: float) -> str:
    return (START + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def answer(*, version: str = V1, **status: Any) -> str:
    return json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": status})


def token_of(headers: tuple[tuple[str, str], ...]) -> str:
    ((name, value),) = headers
    assert name == "Authorization"
    assert value.startswith("Bearer ")
    return value.removeprefix("Bearer ")


class Plugin:
    """A shell script that counts its runs and then does what a test wants."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "plugin"
        self.answers(answer(token="one"))

    def does(self, script: str) -> None:
        self.path.write_text(f'#!/bin/sh\ncd "{self.folder}"\necho run >> runs\n{textwrap.dedent(script)}\n')
        self.path.chmod(0o700)

    def answers(self, text: str) -> None:
        (self.folder / "answer").write_text(text)
        self.does("cat answer")

    def waits(self, then: str = "cat answer") -> None:
        """Say so in the pipe "began", then wait for the pipe "gate"."""
        for pipe in ("began", "gate"):
            if not (self.folder / pipe).exists():
                os.mkfifo(self.folder / pipe)
        self.does(f"echo yes > began; cat gate > /dev/null; {then}")

    async def began(self) -> None:
        await asyncio.to_thread((self.folder / "began").read_text)

    def open_gate(self) -> None:
        (self.folder / "gate").write_text("go")

    @property
    def runs(self) -> int:
        file = self.folder / "runs"
        return file.read_text().count("run") if file.exists() else 0

    def credentials(
        self, *, mode: Literal["Never", "IfAvailable", "Always"] = "Never", **options: Any
    ) -> ExecCredentials:
        return ExecCredentials(ExecPlugin(str(self.path), interactive_mode=mode, **options))


@pytest.fixture
def plugin(tmp_path: Path) -> Plugin:
    return Plugin(tmp_path)


def complaint(credentials: ExecCredentials) -> str:
    async def test(_: ClockedLoop) -> str:
        with pytest.raises(CredentialsError) as caught:
            await credentials.headers()
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None
        return str(caught.value)

    return run(test)


# -- when it runs


def test_a_token_without_expiry_is_asked_for_once(plugin: Plugin) -> None:
    async def test(loop: ClockedLoop) -> None:
        credentials = plugin.credentials()
        assert token_of(await credentials.headers()) == "one"
        loop.ahead = 1e9
        assert token_of(await credentials.headers()) == "one"
        assert await credentials.client_certificate() is None

    run(test)
    assert plugin.runs == 1


def test_a_token_is_renewed_before_it_expires(plugin: Plugin) -> None:
    plugin.answers(answer(token="one", expirationTimestamp=expiry(1000)))

    async def test(loop: ClockedLoop) -> None:
        credentials = plugin.credentials()
        await credentials.headers()
        plugin.answers(answer(token="two", expirationTimestamp=expiry(1020)))
        loop.ahead = 960
        assert token_of(await credentials.headers()) == "one"
        loop.ahead = 980
        assert token_of(await credentials.headers()) == "two"
        # Forty seconds to live: kept for four fifths of them.
        loop.ahead = 1010
        assert token_of(await credentials.headers()) == "two"
        plugin.answers(answer(token="three"))
        loop.ahead = 1015
        assert token_of(await credentials.headers()) == "three"

    run(test)


def test_a_plugin_that_answers_with_something_expired_is_not_run_for_every_request(plugin: Plugin) -> None:
    plugin.answers(answer(token="stale", expirationTimestamp=expiry(-100)))

    async def test(loop: ClockedLoop) -> None:
        credentials = plugin.credentials()
        for _ in range(5):
            assert token_of(await credentials.headers()) == "stale"
        assert plugin.runs == 1
        loop.ahead = 6
        await credentials.headers()
        assert plugin.runs == 2

    run(test)


def test_a_refused_token_is_replaced_once_for_all(plugin: Plugin) -> None:
    async def test(_: ClockedLoop) -> None:
        credentials = plugin.credentials()
        refused = await asyncio.gather(*(credentials.headers() for _ in range(20)))
        assert plugin.runs == 1
        plugin.answers(answer(token="two"))

        async def retried(headers: tuple[tuple[str, str], ...]) -> str:
            credentials.invalidate(headers)
            return token_of(await credentials.headers())

        assert [await retried(headers) for headers in refused] == ["two"] * 20

    run(test)
    assert plugin.runs == 2


def test_a_failing_plugin_leaves_a_good_token_in_use(plugin: Plugin, caplog: pytest.LogCaptureFixture) -> None:
    plugin.answers(answer(token="one", expirationTimestamp=expiry(100)))

    async def test(loop: ClockedLoop) -> None:
        credentials = plugin.credentials()
        await credentials.headers()
        plugin.does("echo no network >&2; exit 1")
        loop.ahead = 90
        for _ in range(5):
            assert token_of(await credentials.headers()) == "one"
        assert plugin.runs == 2
        assert caplog.text.count("no network") == 1
        loop.ahead = 101
        with pytest.raises(CredentialsError, match="no network"):
            await credentials.headers()

    run(test)


def test_a_slow_plugin_leaves_a_good_token_in_use(plugin: Plugin) -> None:
    """The renewals of a Lease are given up after seconds: each would end the plugin, and the next one start it anew."""
    plugin.answers(answer(token="one", expirationTimestamp=expiry(100)))

    async def test(loop: ClockedLoop) -> None:
        credentials = plugin.credentials()
        await credentials.headers()
        (plugin.folder / "answer").write_text(answer(token="two"))
        plugin.waits()
        loop.ahead = 90
        first = loop.create_task(credentials.headers())
        await plugin.began()
        loop.ahead = 95
        assert token_of(await first) == "one"
        assert token_of(await credentials.headers()) == "one"
        plugin.open_gate()
        loop.ahead = 100
        assert token_of(await credentials.headers()) == "two"

    run(test)
    assert plugin.runs == 2


def test_a_plugin_that_no_request_waits_for_ends_with_its_loop(plugin: Plugin) -> None:
    plugin.answers(answer(token="one", expirationTimestamp=expiry(100)))

    async def test(loop: ClockedLoop) -> int:
        credentials = plugin.credentials()
        await credentials.headers()
        plugin.waits()
        plugin.does("echo $$ > pid; echo yes > began; sleep 1000")
        loop.ahead = 90
        first = loop.create_task(credentials.headers())
        await plugin.began()
        loop.ahead = 95
        assert token_of(await first) == "one"
        return os.pidfd_open(int((plugin.folder / "pid").read_text()))

    loop = ClockedLoop()
    bind(loop, clock=loop, seed=1)
    handle = loop.run_until_complete(test(loop))
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()
    del loop
    gc.collect()
    assert select.select([handle], [], [], 10)[0], "still alive"
    os.close(handle)


# -- who waits for it


def test_all_who_wait_share_one_run(plugin: Plugin) -> None:
    plugin.waits()

    async def test(loop: ClockedLoop) -> None:
        credentials = plugin.credentials()
        waiting = [loop.create_task(credentials.headers()) for _ in range(20)]
        await plugin.began()
        plugin.open_gate()
        assert {token_of(headers) for headers in await asyncio.gather(*waiting)} == {"one"}

    run(test)
    assert plugin.runs == 1


@pytest.mark.parametrize("leaving", [[0], [1], [0, 1, 2]])
def test_a_waiter_who_leaves_does_not_end_the_run_of_the_others(plugin: Plugin, leaving: list[int]) -> None:
    plugin.waits()

    async def test(loop: ClockedLoop) -> None:
        credentials = plugin.credentials()
        waiting = [loop.create_task(credentials.headers()) for _ in range(4)]
        await plugin.began()
        for number in leaving:
            waiting[number].cancel()
        plugin.open_gate()
        results = await asyncio.gather(*waiting, return_exceptions=True)
        for number, result in enumerate(results):
            if number in leaving:
                assert isinstance(result, asyncio.CancelledError)
            else:
                assert not isinstance(result, BaseException)
                assert token_of(result) == "one"

    run(test)
    assert plugin.runs == 1


def test_a_start_that_is_cancelled_does_not_fail_the_others(plugin: Plugin) -> None:
    async def test(loop: ClockedLoop) -> None:
        credentials = plugin.credentials()
        first, second = loop.create_task(credentials.headers()), loop.create_task(credentials.headers())
        await asyncio.sleep(0)
        first.cancel()
        assert token_of(await second) == "one"
        assert first.cancelled()

    run(test)


@pytest.mark.parametrize("polite", [True, False])
def test_when_the_last_waiter_leaves_the_plugin_and_its_children_end(plugin: Plugin, *, polite: bool) -> None:
    """The child that ignores a polite request shows that the whole group is killed, whether its parent obeys or not."""
    plugin.waits()
    plugin.does(f"""\
        {"" if polite else "trap '' TERM"}
        sh -c 'trap "" TERM; until [ -s pids ]; do :; done; echo yes > began; while :; do sleep 1000; done' &
        echo $$ $! > pids
        wait""")

    async def test(loop: ClockedLoop) -> None:
        waiting = loop.create_task(plugin.credentials().headers())
        await plugin.began()
        handles = [os.pidfd_open(int(pid)) for pid in (plugin.folder / "pids").read_text().split()]
        assert len(handles) == 2
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        for handle in handles:
            assert select.select([handle], [], [], 10)[0], "still alive"
            os.close(handle)

    run(test)


def test_after_all_requests_left_the_next_one_runs_it_again(plugin: Plugin) -> None:
    plugin.waits()

    async def test(loop: ClockedLoop) -> None:
        credentials = plugin.credentials()
        waiting = loop.create_task(credentials.headers())
        await plugin.began()
        waiting.cancel()
        # While the old run is being ended, another request comes.
        later = loop.create_task(credentials.headers())
        await asyncio.wait([waiting])
        await plugin.began()
        plugin.open_gate()
        assert token_of(await later) == "one"

    run(test)
    assert plugin.runs == 2


def test_a_background_process_of_the_plugin_does_not_hold_the_answer_up(plugin: Plugin) -> None:
    plugin.does("cat answer; sleep 1000 & echo $! > pid")

    async def test(_: ClockedLoop) -> None:
        assert token_of(await plugin.credentials().headers()) == "one"

    run(test)
    os.kill(int((plugin.folder / "pid").read_text()), 9)


# -- its input


@pytest.fixture(scope="module")
def kubectl() -> str:
    return str(Environment.read().program("kubectl"))


@pytest.mark.parametrize("version", [V1, V1BETA1])
@pytest.mark.parametrize("with_cluster", [True, False])
def test_the_plugin_gets_what_kubectl_gives_it(
    plugin: Plugin, kubectl: str, version: str, *, with_cluster: bool
) -> None:
    """Arguments, environment and KUBERNETES_EXEC_INFO are the same; the script is found beside the kubeconfig."""
    plugin.does('echo "$1|$2|$COLOR|$KUBERNETES_EXEC_INFO" >> told; cat answer')
    plugin_config = {
        "command": "./plugin",
        "apiVersion": version,
        "interactiveMode": "Never",
        "args": ["a b", "$c"],
        "env": [{"name": "COLOR", "value": "blue"}, {"name": "KUBERNETES_EXEC_INFO", "value": "no"}],
        "provideClusterInfo": with_cluster,
    }
    cluster = {
        "server": "https://127.0.0.1:1",
        "insecure-skip-tls-verify": True,
        "tls-server-name": "kubernetes",
        "extensions": [{"name": "client.authentication.k8s.io/exec", "extension": {"on": True, "b": ["x", 1.5, None]}}],
    }
    (plugin.folder / "answer").write_text(answer(token="one", version=version))
    config = plugin.folder / "config"
    config.write_text(
        yaml.safe_dump(
            {
                "current-context": "x",
                "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                "clusters": [{"name": "c", "cluster": cluster}],
                "users": [{"name": "u", "user": {"exec": plugin_config}}],
            }
        )
    )
    subprocess.run([kubectl, "--kubeconfig", str(config), "get", "--raw", "/"], check=False, capture_output=True)
    told_by_kubectl = (plugin.folder / "told").read_text().splitlines()[0].split("|")
    (plugin.folder / "told").unlink()

    async def test(_: ClockedLoop) -> None:
        assert token_of(await credentials_for(load_kubeconfig(config)).headers()) == "one"

    run(test)
    told_by_us = (plugin.folder / "told").read_text().splitlines()[0].split("|")
    assert told_by_us[:3] == told_by_kubectl[:3] == ["a b", "$c", "blue"]
    assert json.loads(told_by_us[3]) == json.loads(told_by_kubectl[3])


def test_a_plugin_that_must_ask_needs_a_terminal(plugin: Plugin) -> None:
    assert "interactiveMode: Always" in complaint(plugin.credentials(mode="Always"))
    assert plugin.runs == 0


@pytest.mark.parametrize("mode", ["Always", "IfAvailable"])
def test_at_a_terminal_the_plugin_asks_and_reads_the_answer(plugin: Plugin, mode: str) -> None:
    plugin.does(f"""\
        echo "$KUBERNETES_EXEC_INFO" > told
        printf 'Password: ' >&2
        read -r typed
        printf '{{"apiVersion": "{V1}", "kind": "ExecCredential", "status": {{"token": "%s"}}}}' "$typed\"""")
    program = f"""\
        import asyncio
        from steersman.client.configuration.config import ExecPlugin
        from steersman.client.credentials.exec_plugin import ExecCredentials
        credentials = ExecCredentials(ExecPlugin({str(plugin.path)!r}, interactive_mode={mode!r}))
        print(asyncio.run(credentials.headers()))"""
    near, far = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)], stdin=far, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    os.close(far)
    assert process.stderr is not None
    prompt = process.stderr.read(10)
    os.write(near, b"typed\n")
    printed, complaints = process.communicate(timeout=60)
    os.close(near)
    assert (prompt, complaints) == (b"Password: ", b"")
    assert printed.decode().strip() == "(('Authorization', 'Bearer typed'),)"
    assert json.loads((plugin.folder / "told").read_text())["spec"] == {"interactive": True}


def test_without_a_terminal_the_plugin_gets_no_input(plugin: Plugin) -> None:
    plugin.does("""\
        echo "$KUBERNETES_EXEC_INFO" > told
        cat
        cat answer""")

    async def test(_: ClockedLoop) -> None:
        assert token_of(await plugin.credentials(mode="Never").headers()) == "one"

    run(test)
    assert json.loads((plugin.folder / "told").read_text())["spec"] == {"interactive": False}


# -- what it answers


def test_a_plugin_may_answer_with_a_certificate(plugin: Plugin) -> None:
    plugin.answers(answer(clientCertificateData="CERTIFICATE", clientKeyData="KEY"))

    async def test(_: ClockedLoop) -> None:
        credentials = plugin.credentials()
        assert await credentials.headers() == ()
        certificate = await credentials.client_certificate()
        assert certificate is not None
        assert (certificate.certificate, certificate.key.reveal()) == (b"CERTIFICATE", b"KEY")

    run(test)
    assert plugin.runs == 1


def test_a_plugin_may_answer_in_yaml(plugin: Plugin) -> None:
    plugin.answers(
        f"apiVersion: {V1}\nkind: ExecCredential\nstatus: {{token: one, expirationTimestamp: 2031-01-01T00:00:00Z}}\n"
    )

    async def test(_: ClockedLoop) -> None:
        assert token_of(await plugin.credentials().headers()) == "one"

    run(test)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not an ExecCredential"),
        ("sesame", "not an ExecCredential"),
        ("{", "neither JSON nor YAML"),
        ("\x00", "neither JSON nor YAML"),
        ("[" * 100_000, "not an ExecCredential"),
        ('{"status": {"token": "sesame"}}', f"configured for ExecCredential of {V1}"),
        (answer(version=V1BETA1, token="sesame"), f"it returned {V1BETA1}, but is configured for"),
        (answer(version="sesame", token="sesame"), "it returned something else"),
        (answer(), "neither a token"),
        (answer(token=""), "neither a token"),
        (answer(token=7), "$.status.token"),
        (answer(token="sesame\nx: y"), "not a valid header value"),
        (answer(clientKeyData="sesame"), "only one of a certificate and a key"),
        (answer(token="sesame", expirationTimestamp="soon"), "$.status.expirationTimestamp"),
        (answer(token="sesame", expirationTimestamp="2030-01-01T00:00:00"), "$.status.expirationTimestamp"),
    ],
)
def test_a_wrong_answer_is_an_error_that_does_not_repeat_it(plugin: Plugin, text: str, said: str) -> None:
    plugin.answers(text)
    message = complaint(plugin.credentials())
    assert str(plugin.path) in message
    assert said in message
    assert "sesame" not in message


def test_a_failure_shows_what_the_plugin_said_on_stderr_only(plugin: Plugin) -> None:
    plugin.does("echo sesame; printf 'please \\033[1mlog in' >&2; exit 3")
    message = complaint(plugin.credentials(args=["sesame"], env=[("SESAME", "sesame")]))
    assert "exited with code 3" in message
    assert "please U+001B[1mlog in" in message
    assert "sesame" not in message


def test_long_complaints_are_cut_at_their_beginning(plugin: Plugin) -> None:
    plugin.does("head -c 300000 /dev/zero | tr '\\0' x >&2; echo the end >&2; exit 1")
    message = complaint(plugin.credentials())
    assert message.endswith("the end")
    assert len(message) < 3000


def test_a_plugin_that_is_killed_is_an_error(plugin: Plugin) -> None:
    plugin.does("kill -9 $$")
    assert "signal 9" in complaint(plugin.credentials())


def test_a_plugin_that_does_not_end_is_ended(plugin: Plugin) -> None:
    plugin.waits()
    plugin.does("echo hanging >&2; exec sleep 1000")
    message = complaint(plugin.credentials(timeout=0.3))
    assert "did not finish within 0.3 seconds" in message
    assert "hanging" in message


def test_a_plugin_that_does_not_stop_writing_is_ended(plugin: Plugin) -> None:
    plugin.does("exec yes sesame")
    message = complaint(plugin.credentials())
    assert "more than 1048576 bytes" in message
    assert "sesame" not in message


def test_a_missing_plugin_says_how_to_install_it(plugin: Plugin) -> None:
    credentials = ExecCredentials(ExecPlugin("no-such-plugin", interactive_mode="Never", install_hint="apt install it"))
    message = complaint(credentials)
    assert "no-such-plugin" in message
    assert "in PATH" in message
    assert "apt install it" in message


@pytest.mark.parametrize("path", [":/usr/bin", ".:/usr/bin", "/usr/bin:", "", "sub:/usr/bin"])
def test_a_plugin_in_the_current_directory_is_not_run(
    plugin: Plugin, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """A cloned repository could otherwise hold a program that runs with the user's rights."""
    monkeypatch.chdir(plugin.folder)
    (plugin.folder / "sub").mkdir()
    (plugin.folder / "sub" / "plugin").symlink_to(plugin.path)
    monkeypatch.setenv("PATH", path)
    message = complaint(ExecCredentials(ExecPlugin("plugin", interactive_mode="Never")))
    assert "in PATH" in message
    assert plugin.runs == 0


@pytest.mark.parametrize(
    ("mode", "content", "said"), [(0o600, "#!/bin/sh\n", "not executable"), (0o700, "nonsense", "cannot be started")]
)
def test_a_plugin_that_cannot_be_run_is_an_error(plugin: Plugin, mode: int, content: str, said: str) -> None:
    plugin.path.write_text(content)
    plugin.path.chmod(mode)
    assert said in complaint(plugin.credentials())


def test_too_much_to_tell_is_an_error(plugin: Plugin) -> None:
    assert "cannot be started" in complaint(plugin.credentials(env=[("LARGE", "x" * (1 << 22))]))
    assert "null character" in complaint(plugin.credentials(args=["a\0b"]))
