"""A shared Secret is copied into every namespace that asks for it.

Shows: mapping across namespaces, lookups in a mapper, lists by label (the cache keeps an index for each label in
use), children that cannot have an owner reference because they live in another namespace.

No finalizer is needed: every copy names its source. If a source was deleted while the operator was down, the remaining
copies reveal it.

Run it with `steersman run examples.secret_reflector`, and try:

    kubectl create namespace platform && kubectl create namespace shop
    kubectl create secret generic registry --namespace=platform --from-literal=token=abc
    kubectl label secret registry --namespace=platform reflector.example.com/shared=true
    kubectl label namespace shop reflector.example.com/wants=platform.registry
    kubectl get secret registry --namespace=shop
    kubectl label namespace shop reflector.example.com/wants-        # and the copy is gone
"""

from steersman import Context, Done, Key, Manager, ObjectMeta, Request
from steersman.controller import Stores, View, labeled
from steersman.kinds.core_v1 import Namespace, Secret

SHARED = "reflector.example.com/shared"
WANTS = "reflector.example.com/wants"
COPY_OF = "reflector.example.com/copy-of"
LABEL_LIMIT = 63


def source(label: str | None) -> list[Key]:
    """Return the Secret that a label names as NAMESPACE.NAME: a label value has no slash, a namespace name no dot."""
    namespace, dot, name = (label or "").partition(".")
    return [Key(namespace, name)] if dot else []


def wanted_by(namespace: View[Namespace]) -> list[Key]:
    return source(namespace.labels.get(WANTS))


def concerned(secret: View[Secret], stores: Stores) -> list[Key]:
    """Return the source of a copy, and the source that the namespace wants, because this Secret may occupy its name."""
    namespace = stores.get(Namespace, Key("", secret.key.namespace))
    return [*source(secret.labels.get(COPY_OF)), *(wanted_by(namespace) if namespace else ())]


def copy_of(original: Secret, namespace: str) -> Secret:
    label = f"{original.key.namespace}.{original.key.name}"
    return Secret(
        metadata=ObjectMeta(name=original.key.name, namespace=namespace, labels={COPY_OF: label}),
        type=original.type,
        data=original.data,
    )


async def reconcile(ctx: Context, request: Request) -> Done:
    name = f"{request.key.namespace}.{request.key.name}"
    if len(name) > LABEL_LIMIT:
        return Done()  # no label can name it
    original = await ctx.client.find(Secret, request.key)
    shared = original is not None and SHARED in (original.metadata.labels or {})
    takers = {
        namespace.key.name
        for namespace in (await ctx.client.metadata.list(Namespace, labels={WANTS: name}) if shared else ())
        if not namespace.deleting and namespace.key.name != request.key.namespace
    }
    for copy in await ctx.client.list(Secret, labels={COPY_OF: name}):
        # delete a copy of another type first: the type of a Secret is immutable
        if original is None or copy.key.namespace not in takers or copy.type != original.type:
            await ctx.client.delete(copy, missing_ok=True)
    if original is not None:
        for namespace in sorted(takers):
            if await is_free(ctx, Key(namespace, request.key.name), name):
                await ctx.client.apply(copy_of(original, namespace), force=True)
    return Done()


async def is_free(ctx: Context, key: Key, name: str) -> bool:
    """Whether a copy may be written there: a Secret that is not a copy is never overwritten."""
    present = await ctx.client.find(Secret, key)
    ours = present is None or (present.metadata.labels or {}).get(COPY_OF) == name
    if not ours:
        ctx.logger.warning("%s exists and is not a copy of %s: left alone", key, name)
    return ours


manager = Manager(name="secret-reflector")
(
    manager.controller(Secret, name="reflector")
    .when(labeled(SHARED))
    .watches(Secret, map=concerned)
    .watches(Namespace, map=wanted_by, metadata_only=True)
    .run_with(reconcile)
)
