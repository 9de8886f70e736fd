"""Looks up the user that a program runs as.

A user is ``name``, ``uid``, ``name:group`` or ``uid:gid``. A user with an account also has its supplementary groups.
"""

from __future__ import annotations

import grp
import os
import pwd

import msgspec

from steersman.workloads.kinds import ExecutableSpec, ProcessAdditions
from steersman.workloads.launches import LaunchError

#: The highest number of a user or group. To the kernel, the next one means "unchanged": the program would stay root.
_NUMBER_MAX = 2**32 - 2


class Account(msgspec.Struct, frozen=True):
    """The user, groups and home of a program."""

    uid: int
    gid: int
    groups: tuple[int, ...]
    name: str
    home: str

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables of the user."""
        return {"HOME": self.home, "USER": self.name, "LOGNAME": self.name}

    @property
    def identity(self) -> str:
        """The numbers of the user and its groups, as `Launch` has them; empty for the user of the control plane."""
        return "" if _is_own(self) else f"{self.uid}:{self.gid}:{','.join(map(str, self.groups))}"


def account_of(user: str) -> Account:
    """The account of a user. Raises `LaunchError` if it is unknown, or if this process cannot switch to it."""
    name, has_group, group = user.partition(":")
    uid = _number(user, name)
    try:
        entry = pwd.getpwnam(name) if uid is None else pwd.getpwuid(uid)
    except (KeyError, ValueError):
        entry = None
    if entry is None and (uid is None or not has_group):
        what = "no such user" if uid is None else f"uid {name} has no account; name a group too, as in {name}:{name}"
        raise LaunchError(f"Cannot run as user {user} (spec.steersman.user): {what}.")
    gid = _gid(user, group) if has_group else entry.pw_gid if entry is not None else 0
    if entry is None:
        assert uid is not None
        account = Account(uid, gid, (), name, "/")
    else:
        groups = tuple(sorted(set(os.getgrouplist(entry.pw_name, gid)) - {gid}))
        account = Account(entry.pw_uid, gid, groups, entry.pw_name, entry.pw_dir)
    if os.geteuid() != 0 and not _is_own(account):
        raise LaunchError(
            f"Cannot run as user {user} (spec.steersman.user): only root can start a program as another user, and the"
            f" control plane has uid {os.geteuid()}. Run the control plane as root, or remove the field."
        )
    return account


def spec_account(spec: ExecutableSpec) -> Account | None:
    """The account of the user that a spec names; None without one. Raises `LaunchError`."""
    user = (spec.steersman or ProcessAdditions()).user
    return account_of(user) if user else None


def _is_own(account: Account) -> bool:
    """Whether an account is that of this process, so that no switch is needed."""
    return os.geteuid() != 0 and (account.uid, account.gid) == (os.geteuid(), os.getegid())


def _number(user: str, text: str) -> int | None:
    """The number that a text is; None if it is a name. Raises `LaunchError` for a number that no user or group has."""
    if not (text.isascii() and text.isdigit()):
        return None
    number = int(text) if len(text) <= len(str(_NUMBER_MAX)) else _NUMBER_MAX + 1
    if number > _NUMBER_MAX:
        raise LaunchError(f"Cannot run as user {user} (spec.steersman.user): {text[:20]} is more than {_NUMBER_MAX}.")
    return number


def _gid(user: str, group: str) -> int:
    number = _number(user, group)
    if number is not None:
        return number
    try:
        return grp.getgrnam(group).gr_gid
    except (KeyError, ValueError):
        raise LaunchError(
            f"Cannot run as user {user} (spec.steersman.user): no such group {group or '(empty)'}."
        ) from None
