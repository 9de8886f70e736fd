"""CEL rules of CRDs (``x-kubernetes-validations``), compiled and applied as by kube-apiserver 1.36. Pure.

Guarantees
- `compile_rules` reports what the server reports when a CRD is created, with its messages: syntax, types, literals,
  estimated cost, messages and transitions.
- `Rules.problems` returns the causes that the server returns for an object; `Rules.verdict` also returns the warnings.
- No dependency: parser, checker, estimates and evaluation are here.
"""

from steersman.schemas.cel.applying import Verdict
from steersman.schemas.cel.rules import ABSENT, Rules, compile_rules, has_rules, rules_of

__all__ = ["ABSENT", "Rules", "Verdict", "compile_rules", "has_rules", "rules_of"]
