"""External objects behind Kubernetes objects: a bucket, a DNS record, a virtual machine.

Guarantees
- **Find before create.** Steersman never creates a second external object for one Kubernetes object: not after a restart,
  not after a lost response, not in a repeated reconcile.
- An effect happens exactly once if the service can find its objects by key, at least once otherwise.
- A reconcile never waits for an effect. A bounded number of workers do the slow work, one call at a time per object, and the
  result requeues the object.
- Effects happen only while a reconcile asks for them, and none outlive the controller. When it stops, calls in progress have its
  grace period to end; then they are cancelled.
- No decision compares the clocks of two machines.
- At most so many calls a second, if `CallLimit` says so; a service that asks to wait (`ServiceBusy`) is left alone for so long.
- An exception from an `Api` fails only that object. Its condition shows the message, and Steersman retries with backoff.
"""

from steersman.patterns.external.api import (
    Absent as Absent,
    Api as Api,
    Broken as Broken,
    ExternalKey as ExternalKey,
    Present as Present,
    ServiceBusy as ServiceBusy,
    ServiceRefused as ServiceRefused,
    Working as Working,
)
from steersman.patterns.external.call_limit import CallLimit as CallLimit
from steersman.patterns.external.workers import External as External, look_outside as look_outside
