"""Time, randomness and tasks: asyncio for all other packages, so that a run can be repeated exactly.

Guarantees:

- Wall time, randomness, uids and name suffixes come from here and are bound to the running loop. A loop with a clock
  and a seed, set with `bind`, repeats the same values in the same order; any other loop uses the machine's.
- On such a loop, each `Actor` has its own randomness, wall clock and host name, as if it were another machine.
- Monotonic time is the running loop's `time()`. `boottime` also counts the time while the machine is suspended.
- Every task has an owner: a `Supervisor`, or the `OwnedTasks` of an object, does not end before its tasks have ended, and
  no failure is lost.
- Every queue has a bound: a `Channel` makes a fast sender wait instead of growing.
- Nothing depends on the order of a set: tasks are cancelled, waiters are woken and failures are reported in a
  deterministic order.
- A coroutine of Steersman that is dropped un-awaited inside an `AwaitCheck` is an error there.
"""

from steersman.aio.actors import (
    Actor as Actor,
    actor_in as actor_in,
    current_actor as current_actor,
    host_name as host_name,
)
from steersman.aio.await_check import AwaitCheck as AwaitCheck, MissingAwait as MissingAwait
from steersman.aio.backoff import Backoff as Backoff
from steersman.aio.cancellable_calls import CancellableCalls as CancellableCalls
from steersman.aio.channel import (
    Channel as Channel,
    ChannelClosed as ChannelClosed,
    ChannelFull as ChannelFull,
    ChannelStatistics as ChannelStatistics,
)
from steersman.aio.clock import (
    BootClock as BootClock,
    WallClock as WallClock,
    bind as bind,
    boottime as boottime,
    is_bound as is_bound,
    name_suffix as name_suffix,
    new_uid as new_uid,
    randomness as randomness,
    unbind as unbind,
    utc_now as utc_now,
)
from steersman.aio.closable import Closable as Closable
from steersman.aio.collector import collector_paused as collector_paused
from steersman.aio.imports import check_not_importing as check_not_importing, importing as importing
from steersman.aio.loop_call import call_on as call_on
from steersman.aio.owned_tasks import OwnedTasks as OwnedTasks
from steersman.aio.supervisor import Supervisor as Supervisor

__all__ = [
    "Supervisor",
    "name_suffix",
    "new_uid",
    "randomness",
]
