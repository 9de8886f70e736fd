"""The ApplicationNamespace operator with patterns: it declares the children, and Steersman does the rest.

Run it with `steersman run examples.application_namespace.operator --install-crds`, and try:

    kubectl apply -f - <<< '{"apiVersion": "platform.example.com/v1", "kind": "ApplicationNamespace", "metadata": {"name": "shop"},
                             "spec": {"owners": ["jane"], "quota": {"pods": "10"}, "labels": {"team": "shop"}}}'
    kubectl get applicationnamespaces,networkpolicies,resourcequotas,rolebindings --namespace=shop
    kubectl delete networkpolicy isolation --namespace=shop        # it comes back
    kubectl patch applicationnamespace shop --type=merge -p '{"spec": {"isolated": false}}'
    kubectl delete applicationnamespace shop

bare.py is the same operator without patterns.
"""

from examples.application_namespace.children import administrators, isolation, limits, namespace
from examples.application_namespace.types import ApplicationNamespace

from steersman import Done, Manager, Outputs, reconciles
from steersman.kinds.core_v1 import Namespace, ResourceQuota
from steersman.kinds.networking_v1 import NetworkPolicy
from steersman.kinds.rbac_v1 import RoleBinding


@reconciles(ApplicationNamespace, children=(Namespace, RoleBinding, ResourceQuota, NetworkPolicy))
async def application_namespace(app: ApplicationNamespace, out: Outputs) -> Done:
    """Declare the namespace first, then its content."""
    adopt = app.spec.adopt
    place = out.apply(namespace(app), adopt=adopt)
    if app.spec.owners:
        out.apply(administrators(app, app.spec.owners), after=place, adopt=adopt)
    if app.spec.quota:
        out.apply(limits(app, app.spec.quota), after=place, adopt=adopt)
    if app.spec.isolated:
        out.apply(isolation(app), after=place, adopt=adopt)
    return Done()


manager = Manager(name="application-namespace")
manager.add(application_namespace)
