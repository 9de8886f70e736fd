"""The one way to start a program of the user: a process that Steersman made for it becomes the program.

Guarantees
- The user changes here, in the process that becomes the program. Only the ``exec`` itself applies the program's environment,
  so no code of Steersman, and no other program, runs with it as the user of the control plane.
- A symbolic link of another user in the path of its working directory leads only where its own user may go.
- The program has standard input, output and error, and no other descriptor.
- A program of another user has a session of its own, so that it cannot type into the terminal of the control plane.
- If the program cannot be started, the reason is reported.
"""

from __future__ import annotations

import errno
import os
import signal
import stat
from collections.abc import Sequence
from typing import NoReturn

from .system import KILL, PR_SET_PDEATHSIG, drop_capabilities, leave_session_keyring, prctl

#: As many links as the kernel follows.
_LINKS_MAX = 40


class Program:
    """A program, and what it starts with: fields of a launch message."""

    def __init__(self, fields: Sequence[str]) -> None:
        #: ``user`` is ``uid:gid:group,group``; empty for the user of this process. ``stdin`` is the text of its input.
        self.path, self.folder, self.user, self.stdin, count, *rest = fields
        self.args = rest[: int(count)]
        self.env = dict(each.split("=", 1) for each in rest[int(count) :])


class Start:
    """How a process becomes a program; its first three descriptors are those of the program."""

    def __init__(self, report: int, own: Sequence[int], *, new_session: bool, terminal: int, bound: bool) -> None:
        #: The descriptor for a failure: the number of the error, a space and the reason. It closes when the program starts.
        self.report = report
        #: The descriptors that were made for the program: its user may also open them by name, as /dev/stdout.
        self.own = own
        self.new_session = new_session
        #: The descriptor of the terminal that controls the new session; -1 for none.
        self.terminal = terminal
        #: Whether the kernel ends the program with its parent.
        self.bound = bound


def become(program: Program, start: Start) -> NoReturn:
    """Turn this process into a program."""
    what = "the session"
    try:
        if start.new_session:
            os.setsid()
        if start.terminal >= 0:
            from .terminal import take_control  # noqa: PLC0415 - it would make every shim larger

            take_control(start.terminal)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            # Python ignores them.
            signal.signal(number, signal.SIG_DFL)
        what = folder = f"working directory {program.folder}"
        # Before the change of the user, who may be unable to enter it.
        is_inside = _enter(program.folder)
        what = "the descriptors"
        _close_others(start.report)
        what = f"user {program.user}"
        if program.user:
            _change_user(program.user, start.own)
        if not is_inside:
            what = folder
            os.chdir(program.folder)
        if start.bound:
            # After the change of the user, which resets it.
            prctl(PR_SET_PDEATHSIG, KILL)
        what = program.path
        os.execvpe(program.path, [program.path, *program.args], program.env)  # noqa: S606 - a user's program
    except (OSError, ValueError, OverflowError) as error:
        report_failure(start.report, what, error)
    finally:
        os._exit(127)


def report_failure(report: int, what: str, error: Exception) -> None:
    """Write why a program cannot be started."""
    reason = getattr(error, "strerror", None) or error
    os.write(report, os.fsencode(f"{getattr(error, 'errno', None) or 0} {reason}: {what}"))


def _enter(folder: str) -> bool:
    """Make a folder the working directory. Returns False, somewhere on the way, at a symbolic link of another user."""
    os.chdir("/")
    left = folder.split("/")[::-1]
    links = 0
    while left:
        name = left.pop()
        if name in ("", "."):
            continue
        # Step by step, so that no link is followed that was not looked at.
        step = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        facts = os.fstat(step)
        if not stat.S_ISLNK(facts.st_mode):
            os.fchdir(step)
        elif facts.st_uid not in (0, os.geteuid()):
            return False
        else:
            links += 1
            if links > _LINKS_MAX:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            target = os.readlink("", dir_fd=step)
            if target.startswith("/"):
                os.chdir("/")
            left += target.split("/")[::-1]
        os.close(step)
    return True


def _close_others(kept: int) -> None:
    """Close every descriptor but the first three and one more, which closes when the program starts."""
    os.set_inheritable(kept, False)
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - pathlib costs every shim memory
        descriptor = int(name)
        if descriptor > 2 and descriptor != kept:
            try:
                os.close(descriptor)
            except OSError:
                continue  # the one that listed them


def _change_user(user: str, own: Sequence[int]) -> None:
    uid, gid, groups = user.split(":")
    for descriptor in own:
        os.fchown(descriptor, int(uid), int(gid))
    os.setgroups([int(each) for each in groups.split(",") if each])
    os.setresgid(int(gid), int(gid), int(gid))
    os.setresuid(int(uid), int(uid), int(uid))
    if os.getresuid() != (int(uid),) * 3 or os.getresgid() != (int(gid),) * 3:
        # The kernel takes the number -1 as "unchanged".
        raise OSError("the kernel has not changed the user")
    drop_capabilities()
    # As the new user, whose quota the keyring then uses.
    leave_session_keyring()


def read_fields(descriptor: int) -> list[str]:
    """Read one part of a launch message: ten digits with its length, then fields separated by zero bytes."""
    data = b""
    length = 10
    while len(data) < length:
        piece = os.read(descriptor, min(length - len(data), 65536))
        if not piece:
            raise OSError("the control plane has ended")
        data += piece
        if len(data) == length == 10:
            length += int(data)
    return os.fsdecode(data[10:]).split("\0")
