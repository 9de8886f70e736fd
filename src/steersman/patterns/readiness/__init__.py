"""Readiness: whether an object has become what its spec asks for. Pure.

Guarantees
- `readiness_of` covers every kind: built-in kinds by a rule of their own, custom kinds by their conditions.
- The result depends on the object alone: no request, no clock.
"""

from steersman.patterns.readiness.evaluation import (
    readiness_at_sight as readiness_at_sight,
    readiness_of as readiness_of,
)
from steersman.patterns.readiness.result import Readiness as Readiness
