"""Asks the kernel to schedule the relay with low latency."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from contextlib import suppress

#: The system call number of `sched_setattr`, which Python and older C libraries do not offer.
_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274, "riscv64": 274}
#: The shortest slice that the kernel allows, in nanoseconds.
_SLICE = 100_000
_NICE = -10


class _Attributes(ctypes.Structure):
    """`struct sched_attr`, in its first version."""

    _fields_ = (
        ("size", ctypes.c_uint32),
        ("policy", ctypes.c_uint32),
        ("flags", ctypes.c_uint64),
        ("nice", ctypes.c_int32),
        ("priority", ctypes.c_uint32),
        ("runtime", ctypes.c_uint64),
        ("deadline", ctypes.c_uint64),
        ("period", ctypes.c_uint64),
    )


def run_promptly() -> None:
    """Request short time slices and, if permitted, a higher priority. Does nothing if neither is possible.

    A starting process uses the CPU for some milliseconds; with few cores, every connection would wait for it. Since
    Linux 6.12, a process with a shorter slice preempts others, which needs no privilege. A negative nice value needs one.

    Linux schedules sessions as groups (autogroups). A mostly idle group on changing cores waits longest, so the relay
    stays in the session of the control plane.
    """
    nice = 0
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, _NICE)
        nice = _NICE
    _set_slice(nice, ctypes.CDLL(None, use_errno=True).syscall)


def _set_slice(nice: int, syscall: Callable[..., int]) -> None:
    number = _SCHED_SETATTR.get(os.uname().machine)
    if number is not None:
        attributes = _Attributes(size=ctypes.sizeof(_Attributes), nice=nice, runtime=_SLICE)
        syscall(number, 0, ctypes.byref(attributes), 0)
