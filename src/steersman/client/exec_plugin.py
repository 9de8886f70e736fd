"""Credentials from an exec plugin (``client.authentication.k8s.io`` v1 and v1beta1).

- One run at a time, shared by everybody who waits. Cancelling one waiter leaves the run to the others; when the last
  one is cancelled, the plugin and what it started are ended.
- The result is kept until shortly before it expires, or until the server refuses it. A plugin that fails while its last
  result is still good, and one that answers with something expired, is asked again after some seconds, not at every
  request.
- A failure shows the plugin's stderr, never its stdout, its arguments or its environment.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import shutil
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any

import msgspec

from steersman.aio import now
from steersman.client.config import ExecPlugin
from steersman.client.credentials import ClientCertificate, CredentialsError, Headers, bearer_headers
from steersman.client.exec_process import ExecProcess, Outcome
from steersman.client.secrecy import Hidden, printable

_log = logging.getLogger(__name__)

_TIMEOUT = 120.0
_TIMEOUT_INTERACTIVE = 600.0
# Renewed this much before the end, so that no request is under way with a token that expires on its way. What lives
# shortly is renewed after four fifths of its life.
_MARGIN = timedelta(seconds=30)
_MARGIN_SHARE = 5
# The shortest time between two runs that the plugin's own answers can cause.
_HOLD = 5.0
_VERSION = re.compile(r"client\.authentication\.k8s\.io/v[0-9a-z]{1,10}")


class _Status(msgspec.Struct, rename="camel", frozen=True):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: Annotated[datetime, msgspec.Meta(tz=True)] | None = None


class _ExecCredential(msgspec.Struct, rename="camel", frozen=True):
    api_version: str = ""
    kind: str = ""
    status: _Status | None = None


@dataclass(frozen=True, slots=True, repr=False)
class _Issued:
    """What a plugin gave, and until when it is good."""

    headers: Headers
    certificate: ClientCertificate | None
    expires: datetime | None
    renew: datetime | None


@dataclass(slots=True, repr=False)
class _Run:
    """A run of the plugin, and what came of it: credentials, or a sentence that says why there are none."""

    process: ExecProcess
    waiters: int = 0
    verdict: _Issued | str | None = None

    @property
    def is_over(self) -> bool:
        """Whether there is nothing left to wait for nor to read."""
        finished = self.process.finished
        return self.verdict is not None or (finished.done() and finished.result().abandoned)


class ExecCredentials:
    """Runs an exec plugin whenever credentials are needed and none are held."""

    def __init__(self, plugin: ExecPlugin) -> None:
        self._plugin = plugin
        self._held: _Issued | None = None
        self._hold_until = 0.0
        self._run: _Run | None = None

    def __repr__(self) -> str:
        return f"<ExecCredentials {self._plugin.command}>"

    async def headers(self) -> Headers:
        """Return the header with the plugin's token; none if the plugin gave only a certificate."""
        return (await self._current()).headers

    async def client_certificate(self) -> ClientCertificate | None:
        """Return the plugin's client certificate; None if it gave only a token."""
        return (await self._current()).certificate

    def invalidate(self, rejected: Headers = ()) -> None:
        """Run the plugin for the next request, unless what was refused has been replaced since."""
        held = self._held
        if held is not None and (not rejected or rejected == held.headers):
            self._held = None

    async def _current(self) -> _Issued:
        while True:
            held = self._held
            if held is not None and self._is_fresh(held):
                return held
            run = self._run
            if run is None or run.is_over:
                run = self._run = self._new_run()
            verdict = await self._joined(run)
            if isinstance(verdict, _Issued):
                return verdict
            if verdict is not None:
                return self._instead(verdict)
            # The run was ended because others gave up on it: look again.

    def _is_fresh(self, issued: _Issued) -> bool:
        if issued.renew is None or now() < issued.renew:
            return True
        return asyncio.get_running_loop().time() < self._hold_until

    def _new_run(self) -> _Run:
        plugin = self._plugin
        interactive = self._is_interactive()
        timeout = plugin.timeout or (_TIMEOUT_INTERACTIVE if interactive else _TIMEOUT)
        process = ExecProcess(timeout=timeout, interactive=interactive)
        # Looked up in our own PATH, as kubectl does, not in one that the plugin's environment may set.
        command = shutil.which(plugin.command)
        if command is None:
            hint = f"\n{plugin.install_hint}" if plugin.install_hint else ""
            process.fail(f"no such program, or it may not be executed: is it installed, and in PATH?{hint}")
        else:
            process.start(command, [arg.reveal() for arg in plugin.args], self._environment(interactive=interactive))
        return _Run(process)

    def _is_interactive(self) -> bool:
        mode = self._plugin.interactive_mode
        if mode == "Never":
            return False
        terminal = os.isatty(0)
        if mode == "Always" and not terminal:
            raise self._error("it has to ask somebody (interactiveMode: Always), but standard input is not a terminal")
        return terminal

    async def _joined(self, run: _Run) -> _Issued | str | None:
        """Wait until a run is over; None if it was ended because everybody else gave up on it."""
        run.waiters += 1
        try:
            outcome = await asyncio.shield(run.process.finished)
        except asyncio.CancelledError:
            if run.waiters == 1:
                await run.process.end()
            raise
        finally:
            run.waiters -= 1
        if run.verdict is None and not outcome.abandoned:
            # The first to wake reads the answer for all.
            run.verdict = self._read(outcome)
            if isinstance(run.verdict, _Issued):
                self._held = run.verdict
        return run.verdict

    def _environment(self, *, interactive: bool) -> dict[str, str]:
        plugin = self._plugin
        spec: dict[str, Any] = {"interactive": interactive}
        if plugin.cluster_info is not None:
            spec["cluster"] = msgspec.Raw(plugin.cluster_info.reveal())
        told = msgspec.json.encode({"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec})
        added = {name: value.reveal() for name, value in plugin.env}
        return {**os.environ, **added, "KUBERNETES_EXEC_INFO": told.decode("utf-8")}

    def _read(self, outcome: Outcome) -> _Issued | str:
        """Return the credentials in the plugin's answer, or what is wrong with it."""
        if outcome.problem:
            return outcome.problem
        answer = _decoded(outcome.stdout)
        if isinstance(answer, str):
            return f"its answer is not an ExecCredential: {answer}"
        problem = self._problem_with(answer)
        if problem:
            return problem
        status = answer.status or _Status()
        token, certificate, key = status.token, status.client_certificate_data, status.client_key_data
        headers: Headers = ()
        if token:
            try:
                headers = bearer_headers(Hidden(token))
            except CredentialsError as error:
                return str(error)
        pair = ClientCertificate(certificate.encode(), Hidden(key.encode())) if certificate and key else None
        return _Issued(headers, pair, status.expiration_timestamp, self._renewal(status.expiration_timestamp))

    def _problem_with(self, answer: _ExecCredential) -> str:
        wanted = self._plugin.api_version
        status = answer.status or _Status()
        if (answer.kind, answer.api_version) != ("ExecCredential", wanted):
            # Only a version is shown: anything else in an answer might be a secret in the wrong place.
            got = answer.api_version if _VERSION.fullmatch(answer.api_version) else "something else"
            return f"it answered with {got}, but is configured for ExecCredential of {wanted}"
        if bool(status.client_certificate_data) != bool(status.client_key_data):
            return "it answered with only one of a certificate and a key"
        if not status.token and not status.client_certificate_data:
            return "it answered without a token and without a certificate"
        return ""

    def _renewal(self, expires: datetime | None) -> datetime | None:
        """Return when to run the plugin again."""
        if expires is None:
            return None
        left = expires - now()
        if left <= timedelta():
            # A plugin that hands out its own stale cache, or two clocks that differ: the server is the judge.
            self._hold_until = asyncio.get_running_loop().time() + _HOLD
            return expires
        return expires - min(_MARGIN, left / _MARGIN_SHARE)

    def _instead(self, problem: str) -> _Issued:
        """Return what is held, if a failed run leaves it good; otherwise raise."""
        held = self._held
        if held is None or held.expires is None or now() >= held.expires:
            raise self._error(problem)
        time = asyncio.get_running_loop().time()
        # Everybody who waited for the run comes here: one line is enough.
        if time >= self._hold_until:
            self._hold_until = time + _HOLD
            _log.warning(
                "exec plugin %s failed: %s\nIts last credentials stay in use until they expire",
                self._plugin.command,
                problem,
            )
        return held

    def _error(self, problem: str) -> CredentialsError:
        return CredentialsError(f"exec plugin {printable(self._plugin.command, limit=400)}: {problem}")


def _decoded(stdout: bytes) -> _ExecCredential | str:
    try:
        return msgspec.json.decode(stdout, type=_ExecCredential)
    except msgspec.ValidationError as error:
        return str(error)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        pass
    # YAML is rare here, but kubectl reads it.
    from steersman.client.bounded_yaml import YamlError, parse_yaml  # noqa: PLC0415 - a YAML parser is slow to import

    try:
        return msgspec.convert(parse_yaml(stdout), type=_ExecCredential)
    except msgspec.ValidationError as error:
        return str(error)
    except YamlError:
        return "it is neither JSON nor YAML"
