"""Things of the real world behind Kubernetes objects: a bucket, a DNS record, a virtual machine.

Guarantees
- **Found first.** What the outside has for an object is never made a second time: not after a restart, not after an
  answer that was lost, not by a reconcile that runs again.
- An effect happens exactly once where the outside finds by key what it made, at least once otherwise.
- A reconcile never waits for an effect: slow work is done by a bounded number of workers, one piece at a time for each
  object, and what comes of it is a cause to reconcile.
- Nothing happens that no reconcile asks for, and nothing outlives the controller: when it stops, work is cancelled.
- Whatever an api raises is that one object's failure, told in words, and tried again later and later.
"""

from steersman.patterns.external.api import Api, Broken, ExternalKey, Gone, Present, Refused, Working
from steersman.patterns.external.workers import External, look_outside

__all__ = ["Api", "Broken", "External", "ExternalKey", "Gone", "Present", "Refused", "Working", "look_outside"]
