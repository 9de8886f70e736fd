"""What users do when a scenario has no workload: every kind of the operator is created, changed field by field, and deleted.

Guarantees
- The same manager gives the same requests, in every run and every process.
- Each object is one that the server accepts in a dry run. A change that the server rejects is skipped.
- If no valid object can be derived, an error names the kind, the field and what to write.
"""

from steersman.simulation.derivation.spec_search import NoValidObject as NoValidObject
from steersman.simulation.derivation.workload import derived_workload as derived_workload

__all__ = ["NoValidObject", "derived_workload"]
