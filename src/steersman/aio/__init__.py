"""Time, chance and tasks: what every other room needs from asyncio, so that a run can be repeated exactly.

Guarantees:

- Wall time, randomness, uids and name suffixes come from here and are bound to the running loop. A loop that was given
  a clock and a seed with `bind` repeats the same values in the same order; any other loop has the machine's own.
- Monotonic time is the running loop's `time()`. `boottime` is for what must also count the time a machine sleeps.
- Every task has an owner: a `Supervisor` does not end before its tasks have ended, and no failure is lost.
- Every queue has a bound: a `Channel` makes a fast sender wait instead of growing.
- Nothing here depends on the order of a set: tasks are cancelled, waiters are woken and failures are reported in an
  order that follows from what happened.
"""

from steersman.aio.backoff import Backoff
from steersman.aio.channel import Channel, ChannelClosed, ChannelFull, ChannelStatistics
from steersman.aio.clock import BootClock, Clock, bind, boottime, name_suffix, new_uid, now, randomness, unbind
from steersman.aio.supervisor import Supervisor

__all__ = [
    "Backoff",
    "BootClock",
    "Channel",
    "ChannelClosed",
    "ChannelFull",
    "ChannelStatistics",
    "Clock",
    "Supervisor",
    "bind",
    "boottime",
    "name_suffix",
    "new_uid",
    "now",
    "randomness",
    "unbind",
]
