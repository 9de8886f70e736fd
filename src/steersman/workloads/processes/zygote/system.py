"""What the kernel offers: signals, the tree of processes, and attributes of this process."""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import sys

PR_SET_PDEATHSIG, PR_SET_NAME, PR_SET_CHILD_SUBREAPER = 1, 15, 36
#: Plain numbers: the constants of `signal` are enums, whose methods cost memory.
KILL, TERM, STOP = int(signal.SIGKILL), int(signal.SIGTERM), int(signal.SIGSTOP)
#: Signals that the zygote ignores, and that a program gets back.
IGNORED = (int(signal.SIGINT), TERM, int(signal.SIGHUP))

#: The number of the system call ``keyctl``, which the C library does not offer, by machine.
_KEYCTL = {"x86_64": 250, "aarch64": 219, "riscv64": 219, "ppc64le": 271, "s390x": 280, "armv7l": 311, "i686": 288}
_JOIN_SESSION_KEYRING = 1
#: The version of the call ``capset``, for 64 capabilities.
_CAPABILITIES = 0x20080522

if sys.platform == "linux":
    _libc = ctypes.CDLL(None, use_errno=True)
    #: Sets an attribute of this process.
    prctl = _libc.prctl


def leave_session_keyring() -> None:
    """Get an empty session keyring: a process may read every key in its own, also those of another user."""
    number = _KEYCTL.get(os.uname().machine)
    if number is None or _libc.syscall(number, _JOIN_SESSION_KEYRING, None) >= 0:
        return
    error = ctypes.get_errno()
    # A kernel without keyrings, or a container that may not use them: then its programs cannot use them either.
    if error not in (errno.ENOSYS, errno.EPERM):
        raise OSError(error, os.strerror(error))


def drop_capabilities() -> None:
    """Give up every capability. With secure bits such as ``no-setuid-fixup``, a change of the user keeps some or all."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITIES, 0)
    # Effective, permitted and inheritable ones, each in two words. Without these, none is ambient either.
    if _libc.capset(header, (ctypes.c_uint32 * 6)()) < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def stat_fields(pid: int | str) -> list[bytes]:
    """The fields of a process after its name: state, parent and so on; empty if the process is gone."""
    try:
        file = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
    except OSError:
        return []
    try:
        return os.read(file, 4096).rpartition(b")")[2].split()
    except OSError:
        return []
    finally:
        os.close(file)


def children_by_parent() -> dict[int, list[int]]:
    """The children of every process of the machine; zombies are left out."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - pathlib costs every shim memory
        fields = stat_fields(name) if name.isdigit() else []
        if fields and fields[0] != b"Z":
            children.setdefault(int(fields[1]), []).append(int(name))
    return children


def descendants(pid: int, children: dict[int, list[int]]) -> list[int]:
    """All processes below a process, parents before children."""
    found = list(children.get(pid, ()))
    for each in found:
        found += children.get(each, ())
    return found


def kill(pid: int, number: int) -> bool:
    """Signal a process. Returns whether the kernel allowed it; a process that is gone counts as signaled."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return True


def wake_on_child() -> int:
    """A descriptor that is readable after a child has ended; the zygote has set the handler of SIGCHLD."""
    reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    return reader


def drain(descriptor: int) -> None:
    """Empty a wake-up pipe."""
    try:
        while os.read(descriptor, 4096):
            pass
    except BlockingIOError:
        pass
