"""From the spec of an Executable to the launch of its process: environment, arguments, files, addresses.

Guarantees
- Everything that can be wrong with a spec is reported as a `LaunchError`, a sentence for the status.
- A service without an address yet raises `NotYet`: the start waits.
"""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import TextIO

import msgspec

from steersman.objects import MicroTime, parse_duration
from steersman.workloads.environment import effective_environment, parse_env_file
from steersman.workloads.kinds import ContainerSpec, Executable, ExecutableSpec, ProcessAdditions
from steersman.workloads.linked_files import open_readable
from steersman.workloads.monitored_process import started_at
from steersman.workloads.templates import Addresses, TemplateError, expand

#: The variables of each file, by its path.
EnvFiles = Mapping[str, Mapping[str, str]]
#: Seconds between the stop signal and SIGKILL, unless the spec says otherwise.
STOP_TIMEOUT = 10.0
#: The longest file of variables.
_BYTES_MAX = 4 << 20
#: The maximum difference between two start times of the same process.
_SAME_START = timedelta(seconds=1)


class LaunchError(Exception):
    """A process or a container cannot be started as its spec says. The message says why, as a sentence."""


class Stop(msgspec.Struct, frozen=True):
    """How a process is asked to end."""

    signal: int
    timeout: float


class PreparedLaunch(msgspec.Struct, frozen=True):
    """What a process starts with, after files were read and templates filled in."""

    program: str
    args: tuple[str, ...]
    env: Mapping[str, str]
    folder: str


def texts_with_templates(spec: ExecutableSpec | ContainerSpec) -> list[str]:
    """The texts of a spec whose templates are filled in before the start, which are those of no probe."""
    return [*(spec.args or ()), *(variable.value for variable in spec.env or ())]


def is_persistent(spec: ExecutableSpec) -> bool:
    """Whether the process survives its object."""
    return spec.persistent or spec.mode == "persistent"


def adopts(spec: ExecutableSpec) -> bool:
    """Whether the Executable uses a persistent process that exists; in mode cleanup, only to end it."""
    return is_persistent(spec) or spec.mode == "cleanup"


def working_folder(spec: ExecutableSpec, default: str) -> str:
    """The working directory, absolute."""
    return str(Path(default) / (spec.working_directory or ""))


def read_env_files(paths: Iterable[str], folder: str = "/") -> EnvFiles:
    """The variables of files, by the path in the spec. Raises `LaunchError`."""
    variables: dict[str, dict[str, str]] = {}
    for path in paths:
        try:
            with open(open_readable(Path(folder) / path), encoding="utf-8") as file:  # noqa: PTH123 - a descriptor
                variables[path] = parse_env_file(_text(file), path)
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "it is not UTF-8"
            raise LaunchError(f"Cannot read the file of variables {path}: {why}.") from None
        except ValueError as error:
            raise LaunchError(f"{error}.") from None
    return variables


def _text(file: TextIO) -> str:
    if os.fstat(file.fileno()).st_size > _BYTES_MAX:
        raise OSError(errno.EFBIG, f"it has more than {_BYTES_MAX} bytes")
    return file.read(_BYTES_MAX)


def prepare(
    spec: ExecutableSpec, *, ambient: Mapping[str, str], files: EnvFiles, addresses: Addresses, folder: str
) -> PreparedLaunch:
    """Fill in what a process starts with. Raises `LaunchError` and `templates.NotYet`."""
    if spec.pem_certificates is not None:
        raise LaunchError("spec.pemCertificates is not supported: remove it.")
    if spec.terminal is not None and spec.terminal.socket_mode == "connect":
        raise LaunchError("spec.terminal.socketMode connect is not supported: use listen, and connect to the socket.")
    stop_signal = (spec.steersman or ProcessAdditions()).stop_signal
    if stop_signal and signal_number(stop_signal) is None:
        raise LaunchError(
            f"spec.steersman.stopSignal must be the name of a signal, such as SIGINT (got {stop_signal})."
        )
    try:
        env = effective_environment(
            ambient,
            [files[path] for path in spec.env_files or ()],
            spec.env or (),
            lambda text: expand(text, addresses),
        )
        args = tuple(expand(argument, addresses) for argument in spec.args or ())
    except TemplateError as error:
        raise LaunchError(f"{error}.") from None
    for text in (spec.executable_path, *args, *env, *env.values()):
        if "\0" in text:
            raise LaunchError("An argument or a variable contains a zero byte, which no program can receive.")
    return PreparedLaunch(spec.executable_path, args, env, folder)


def check_monitored(spec: ExecutableSpec) -> None:
    """Raise `LaunchError` if the process to monitor has ended, even if another process has its pid now."""
    if spec.monitor_pid is None or spec.monitor_timestamp is None:
        return
    began = started_at(spec.monitor_pid)
    if began is None or abs(began - spec.monitor_timestamp) > _SAME_START:
        actual = f"pid {spec.monitor_pid} began at {MicroTime.of(began)}" if began is not None else "its pid is unused"
        raise LaunchError(
            f"The process of spec.monitorPid, which began at {spec.monitor_timestamp} (spec.monitorTimestamp), has ended:"
            f" {actual}."
        )


def stop_of(executable: Executable) -> Stop:
    """How the process of an Executable is asked to end. A signal that was changed to an unknown one counts as SIGTERM."""
    added = executable.spec.steersman or ProcessAdditions()
    timeout = parse_duration(added.stop_timeout).total_seconds() if added.stop_timeout else STOP_TIMEOUT
    return Stop(signal_number(added.stop_signal or "SIGTERM") or int(signal.SIGTERM), max(timeout, 0.0))


def signal_number(name: str) -> int | None:
    """The number of a signal, by a name such as ``SIGINT``, ``INT`` or ``2``; None if there is none."""
    if name.isdigit():
        return int(name) if int(name) in set(signal.Signals) else None
    text = name.upper() if name.upper().startswith("SIG") else f"SIG{name.upper()}"
    return int(signal.Signals[text]) if text in signal.Signals.__members__ else None
