"""CEL rules of CRDs (``x-kubernetes-validations``), as kube-apiserver 1.36 compiles and applies them. Pure.

Guarantees
- `compile_rules` finds in expressions what the server finds when a CRD is created, in its words: syntax, types, literals,
  the cost that they can have, messages and transitions.
- `Rules.problems` gives for an object the causes that the server gives; `Rules.verdict` also the warnings.
- No dependency: parser, checker, estimates and evaluation are here.
"""

from steersman.schemas.cel.applying import Verdict
from steersman.schemas.cel.rules import ABSENT, Rules, compile_rules, has_rules, rules_of

__all__ = ["ABSENT", "Rules", "Verdict", "compile_rules", "has_rules", "rules_of"]
