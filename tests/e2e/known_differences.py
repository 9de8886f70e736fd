"""The specs of passing.txt that do not pass on the embedded server, each with the cause."""

from __future__ import annotations

_ATTACH = "no container runs, so the server answers an attach with 404 before it calls webhooks"
_COMPONENTS = "the list of ComponentStatuses is empty"
_SEATS = "`/metrics` has no `apiserver_flowcontrol_nominal_limit_seats`"

KNOWN: dict[str, str] = {
    "[sig-api-machinery] API priority and fairness should ensure that requests can be classified by adding FlowSchema and PriorityLevelConfiguration": _SEATS,
    "[sig-api-machinery] AdmissionWebhook [Privileged:ClusterAdmin] should be able to deny attaching pod [Conformance]": _ATTACH,
    "[sig-cli] Kubectl client Kubectl get componentstatuses should get componentstatuses": _COMPONENTS,
}
