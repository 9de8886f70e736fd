"""Credentials from an exec plugin (``client.authentication.k8s.io`` v1 and v1beta1).

- One run at a time, shared by all waiters. Cancelling one waiter leaves the run to the others; cancelling the last one
  ends the plugin and its child processes.
- While the last result is valid, no request waits long for the next one: a plugin that is slow, or hangs, delays neither
  reconciles nor the renewals of a Lease, which would otherwise start it anew at each attempt.
- The result is kept until shortly before it expires, or until the server rejects it. A plugin that fails while its last
  result is still valid, or that returns expired credentials, runs again after some seconds, not for every request.
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

from steersman.aio import utc_now
from steersman.client.configuration.config import ExecPlugin
from steersman.client.configuration.secrecy import Hidden, printable
from steersman.client.credentials.credentials import ClientCertificate, Headers, bearer_headers
from steersman.client.credentials.exec_process import ExecProcess, Outcome
from steersman.errors import CredentialsError

_log = logging.getLogger("steersman.client.credentials")

_TIMEOUT = 120.0
_TIMEOUT_INTERACTIVE = 600.0
# Renew this long before expiry, so that no token expires while a request is in flight. Short-lived tokens are renewed
# after four fifths of their life.
_MARGIN = timedelta(seconds=30)
_MARGIN_SHARE = 5
# How long requests wait for a run whose result is not needed yet.
_PATIENCE = 3.0
# The minimum time between two runs caused by the plugin's own results.
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
    """The credentials a plugin returned, and when they expire."""

    headers: Headers
    certificate: ClientCertificate | None
    expires: datetime | None
    renew: datetime | None


@dataclass(slots=True, repr=False)
class _Run:
    """A run of the plugin and its result: credentials, or why there are none."""

    process: ExecProcess
    began: float
    waiters: int = 0
    verdict: _Issued | str | None = None

    @property
    def is_over(self) -> bool:
        """Whether the run has a verdict or was abandoned."""
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
        """Run the plugin for the next request, unless the rejected credentials have already been replaced."""
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
            # All other waiters abandoned the run: start over.

    def _is_fresh(self, issued: _Issued) -> bool:
        if issued.renew is None or utc_now() < issued.renew:
            return True
        return asyncio.get_running_loop().time() < self._hold_until

    def _new_run(self) -> _Run:
        plugin = self._plugin
        interactive = self._is_interactive()
        timeout = plugin.timeout or (_TIMEOUT_INTERACTIVE if interactive else _TIMEOUT)
        process = ExecProcess(timeout=timeout, interactive=interactive)
        command = _found(plugin.command)
        if command is None:
            hint = f"\n{plugin.install_hint}" if plugin.install_hint else ""
            where = "in PATH; the current directory does not count" if shutil.which(plugin.command) else "in PATH"
            process.fail(f"program not found or not executable: is it installed, and {where}?{hint}")
        else:
            process.start(command, [arg.reveal() for arg in plugin.args], self._environment(interactive=interactive))
        return _Run(process, asyncio.get_running_loop().time())

    def _is_interactive(self) -> bool:
        mode = self._plugin.interactive_mode
        if mode == "Never":
            return False
        terminal = os.isatty(0)
        if mode == "Always" and not terminal:
            raise self._error("it needs to prompt (interactiveMode: Always), but standard input is not a terminal")
        return terminal

    async def _joined(self, run: _Run) -> _Issued | str | None:
        """Wait for the end of a run; None if all other waiters abandoned it. Valid credentials stay in use if it is slow."""
        finished = run.process.finished
        run.waiters += 1
        try:
            while not finished.done():
                patience = self._patience(run)
                if patience is not None and patience <= 0:
                    # The run goes on; a later request reads its result.
                    return self._held
                await asyncio.wait((finished,), timeout=patience)
        except asyncio.CancelledError:
            if run.waiters == 1:
                await run.process.end()
            raise
        finally:
            run.waiters -= 1
        outcome = finished.result()
        if run.verdict is None and not outcome.abandoned:
            # The first waiter to wake reads the result for all.
            run.verdict = self._read(outcome)
            if isinstance(run.verdict, _Issued):
                self._held = run.verdict
        return run.verdict

    def _patience(self, run: _Run) -> float | None:
        """How many more seconds to wait for a run; None if no valid credentials are held."""
        if self._held is None or not _is_valid(self._held):
            return None
        return run.began + _PATIENCE - asyncio.get_running_loop().time()

    def _environment(self, *, interactive: bool) -> dict[str, str]:
        plugin = self._plugin
        spec: dict[str, Any] = {"interactive": interactive}
        if plugin.cluster_info is not None:
            spec["cluster"] = msgspec.Raw(plugin.cluster_info.reveal())
        info = msgspec.json.encode({"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec})
        added = {name: value.reveal() for name, value in plugin.env}
        return {**os.environ, **added, "KUBERNETES_EXEC_INFO": info.decode("utf-8")}

    def _read(self, outcome: Outcome) -> _Issued | str:
        """Return the credentials in the plugin's output, or what is wrong with it."""
        if outcome.problem:
            return outcome.problem
        answer = _decoded(outcome.stdout)
        if isinstance(answer, str):
            return f"its output is not an ExecCredential: {answer}"
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
            # Show only a version: anything else in the output might be a misplaced secret.
            got = answer.api_version if _VERSION.fullmatch(answer.api_version) else "something else"
            return f"it returned {got}, but is configured for ExecCredential of {wanted}"
        if bool(status.client_certificate_data) != bool(status.client_key_data):
            return "it returned only one of a certificate and a key"
        if not status.token and not status.client_certificate_data:
            return "it returned neither a token nor a certificate"
        return ""

    def _renewal(self, expires: datetime | None) -> datetime | None:
        """Return when to run the plugin again."""
        if expires is None:
            return None
        left = expires - utc_now()
        if left <= timedelta():
            # A stale plugin cache, or clock skew: let the server decide.
            self._hold_until = asyncio.get_running_loop().time() + _HOLD
            return expires
        return expires - min(_MARGIN, left / _MARGIN_SHARE)

    def _instead(self, problem: str) -> _Issued:
        """Return the held credentials if they are still valid; otherwise raise."""
        held = self._held
        if held is None or not _is_valid(held):
            raise self._error(problem)
        time = asyncio.get_running_loop().time()
        # All waiters of the run come here: log once.
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


def _is_valid(issued: _Issued) -> bool:
    """Whether credentials that should be renewed are still valid."""
    return issued.expires is not None and utc_now() < issued.expires


def _decoded(stdout: bytes) -> _ExecCredential | str:
    try:
        return msgspec.json.decode(stdout, type=_ExecCredential)
    except msgspec.ValidationError as error:
        return str(error)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        pass
    # YAML is rare here, but kubectl accepts it.
    from steersman.client.configuration.bounded_yaml import YamlError, parse_yaml  # noqa: PLC0415 - a YAML parser is slow to import

    try:
        return msgspec.convert(parse_yaml(stdout), type=_ExecCredential)
    except msgspec.ValidationError as error:
        return str(error)
    except YamlError:
        return "neither JSON nor YAML"


def _found(command: str) -> str | None:
    """The program of a command, looked up in our own PATH, as kubectl does, not in the plugin's environment.

    Relative entries of PATH are ignored: otherwise the current directory would choose the program.
    """
    places = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return shutil.which(command, path=os.pathsep.join(filter(os.path.isabs, places)) or "/nonexistent")
