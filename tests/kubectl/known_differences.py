"""Where kubectl prints something else against the embedded server on purpose, each with its reason.

An entry that no longer explains a difference fails the suite: it is to be deleted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True, slots=True)
class Known:
    """Printed lines that fit `text`, a regular expression, and that only one of the servers shows.

    They are those of scenarios and lines whose text fits `scenario` and `line` (both with ``*``).
    """

    scenario: str
    line: str
    text: str
    reason: str

    def explains(self, scenario: str, line: str, text: str) -> bool:
        """Whether this difference is meant."""
        fits = fnmatchcase(scenario, self.scenario) and fnmatchcase(line, self.line)
        return fits and re.fullmatch(self.text, text) is not None


_DESCRIPTIONS = "descriptions are those of our classes: lists and examples in them are wrapped like other words"
KNOWN: tuple[Known, ...] = (
    Known(
        "*",
        "kubectl create *",
        r"Warning: this server stores priority levels, but .*",
        "the server stores what it does not enforce and warns, so that no program relies on it",
    ),
    Known(
        "*/*",
        "*version*",
        r".*(Server Version|gitVersion|gitCommit|goVersion|compiler).*",
        "the version tells Steersman's beside that of Kubernetes, and nothing here was compiled by Go",
    ),
    Known(
        "asking/mistakes",
        "kubectl logs web -c nginx",
        r"[01]|Error from server \(NotFound\): the server could not find the requested resource",
        "there are no kubelets, so Pods have no logs: the subresource is not served, instead of an empty answer",
    ),
    Known("asking/explain", "kubectl explain deploy.spec.strategy", r" +- .*", _DESCRIPTIONS),
    Known("asking/explain-all-kinds", "kubectl explain sts --recursive", r" +- .*", _DESCRIPTIONS),
    Known(
        "asking/explain-all-kinds",
        "kubectl explain csr --recursive",
        r' +(1\. client|"kubernetes\.io/kube-apiserver-client|2\. serving|certificates for TLS|the "kubernetes|securely).*',
        _DESCRIPTIONS,
    ),
    Known(
        "asking/explain-all-kinds",
        "kubectl explain endpoints --recursive",
        r'\s+(Name: "mysvc|"?10\.10|309}|93},|Subsets|Addresses|Ports|[{}\]]).*',
        _DESCRIPTIONS,
    ),
)
