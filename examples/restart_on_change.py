"""A Deployment restarts when a Secret that its Pods read changes.

Shows: a cache of the Secrets to which Deployments refer, and of no other, however many the cluster has. A change of one
reconciles the Deployments that read it.

Run it with `steersman run examples.restart_on_change`, and try:

    kubectl create secret generic web --from-literal=token=abc
    kubectl create deployment web --image=nginx:1.27
    kubectl label deployment web restart.example.com/on-change=true
    kubectl set env deployment/web --from=secret/web
    kubectl delete secret web
    kubectl create secret generic web --from-literal=token=xyz       # and the Pods are replaced
"""

from collections.abc import Iterator
from hashlib import sha256

from steersman import Context, Done, Key, Manager, MergePatch, Request
from steersman.controller import View, labeled
from steersman.kinds.apps_v1 import Deployment
from steersman.kinds.core_v1 import Secret

ON_CHANGE = "restart.example.com/on-change"
SECRETS = "restart.example.com/secrets"


def secrets_of(deployment: View[Deployment]) -> list[str]:
    """Return the names of the Secrets that the Pods read; none without the label."""
    return sorted(set(names(deployment.object))) if ON_CHANGE in deployment.labels else []


def names(deployment: Deployment) -> Iterator[str]:
    spec = deployment.spec.template.spec if deployment.spec else None
    for volume in (spec.volumes or ()) if spec else ():
        if volume.secret and volume.secret.secret_name:
            yield volume.secret.secret_name
    for container in spec.containers if spec else ():
        for source in container.env_from or ():
            if source.secret_ref and source.secret_ref.name:
                yield source.secret_ref.name
        for variable in container.env or ():
            chosen = variable.value_from and variable.value_from.secret_key_ref
            if chosen and chosen.name:
                yield chosen.name


async def reconcile(ctx: Context, request: Request) -> Done:
    deployment = await ctx.client.find(Deployment, request.key)
    if deployment is None or ON_CHANGE not in (deployment.metadata.labels or {}) or not deployment.spec:
        return Done()
    digest = sha256()
    for name in sorted(set(names(deployment))):
        secret = await ctx.client.find(Secret, Key(request.key.namespace, name))
        if secret is None:
            return Done()  # its Pods could not start; the Secret's creation reconciles the Deployment
        for key, value in sorted((secret.data or {}).items()):
            digest.update(f"{name}/{key}={sha256(value).hexdigest()}\n".encode())
    template = deployment.spec.template.metadata
    if ((template.annotations if template else None) or {}).get(SECRETS) != digest.hexdigest():
        patch = {"spec": {"template": {"metadata": {"annotations": {SECRETS: digest.hexdigest()}}}}}
        await ctx.client.patch(Deployment, request.key, MergePatch(patch))
    return Done()


manager = Manager(name="restart-on-change")
manager.controller(Deployment).when(labeled(ON_CHANGE)).refers_to(Secret, by=secrets_of).run_with(reconcile)
