"""The plugin ResourceQuota: rejects writes that exceed a quota of their namespace, and records the usage of others."""

from __future__ import annotations

import asyncio
from typing import Final
from weakref import WeakValueDictionary

from steersman.apiserver.admission import AdmissionOperation, Attributes, Plugin
from steersman.apiserver.context import Backend
from steersman.apiserver.documents import copied, decode_stored
from steersman.apiserver.errors import RequestRejected, internal
from steersman.apiserver.identity import User
from steersman.apiserver.quotas.amounts import Amounts
from steersman.apiserver.quotas.charges import Charge, Quota, charges
from steersman.apiserver.quotas.rules import DEVICE_CLAIMS, DEVICE_CLASSES, PODS, SERVICES, VOLUME_CLAIMS, usage_rules
from steersman.apiserver.quotas.scopes import is_terminating
from steersman.apiserver.quotas.usage import UsageRules
from steersman.apiserver.request import ServerRequest
from steersman.apiserver.verbs.options import WriteOptions
from steersman.apiserver.verbs.update import Change
from steersman.wire import HttpRequest

_SERVER: Final = User(name="system:apiserver", groups=("system:masters", "system:authenticated"))
#: Resources whose updates can increase the usage.
_GROWING: Final = frozenset({SERVICES, VOLUME_CLAIMS, DEVICE_CLAIMS})
#: Resources that no quota counts: those that are not stored, and Events.
_IGNORED: Final = frozenset(
    {
        ("", "bindings"),
        ("", "componentstatuses"),
        ("", "events"),
        ("events.k8s.io", "events"),
        *(("authentication.k8s.io", f"{name}reviews") for name in ("token", "selfsubject")),
        *(
            ("authorization.k8s.io", f"{name}reviews")
            for name in ("subjectaccess", "selfsubjectaccess", "localsubjectaccess", "selfsubjectrules")
        ),
    }
)
#: Attempts to record the usage of a write while other writes change the same quota.
_ATTEMPTS: Final = 4
#: Seconds after which a write that waits for its quotas fails.
_PATIENCE: Final = 10.0


class ResourceQuotas(Plugin):
    """Charges creates, and updates that use more, to the quotas of their namespace."""

    operations: frozenset[AdmissionOperation] = frozenset({"CREATE", "UPDATE"})

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        #: A lock for each namespace: its quotas are charged for one write at a time.
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def validate(self, attributes: Attributes) -> None:
        """Check a write, and record its usage."""
        namespace = attributes.namespace
        if not namespace or not _may_use_more(attributes):
            return
        if not (await self._backend.storage.list(_prefix(namespace), limit=1)).records:
            return
        lock = self._locks.setdefault(namespace, asyncio.Lock())
        try:
            async with asyncio.timeout(_PATIENCE), lock:
                await self._charge(attributes)
        except TimeoutError:
            raise internal("resource quota evaluation timed out") from None

    async def _charge(self, attributes: Attributes) -> None:
        """Charge a write to the quotas. Retries a quota that another write changed at the same time."""
        rules = await self._rules_of(attributes)
        again: dict[str, RequestRejected] | None = None
        for _ in range(_ATTEMPTS):
            page = await self._backend.storage.list(_prefix(attributes.namespace))
            quotas = [Quota(decode_stored(record)) for record in page.records]
            found = charges([quota for quota in quotas if again is None or quota.name in again], rules, attributes)
            if attributes.dry_run:
                return
            again = {}
            for charge in found:
                try:
                    await self._record(charge)
                except RequestRejected as refused:
                    again[charge.quota.name] = refused
                # Others are answered between two quotas: a namespace may have hundreds.
                await asyncio.sleep(0)
            if not again:
                return
        raise list((again or {}).values())[-1]

    async def _rules_of(self, attributes: Attributes) -> UsageRules:
        name = (attributes.definition.gvk.group, attributes.definition.resource)
        if name != DEVICE_CLAIMS:
            return usage_rules(name)
        page = await self._backend.storage.list(f"{'/'.join(DEVICE_CLASSES)}/")
        return usage_rules(name, map(decode_stored, page.records))

    async def _record(self, charge: Charge) -> None:
        """Write the usage to the quota as the server's own user. Fails if the quota has changed since."""
        definition = self._backend.registry.find("", "v1", "resourcequotas")
        if definition is None:
            return
        tree, used = charge.quota.tree, charge.used
        tree["status"]["used"] = _written(used)
        metadata = tree["metadata"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/resourcequotas/{metadata['name']}/status"
        wire = HttpRequest("PUT", path, headers=(("User-Agent", "kube-apiserver"),))
        change = Change(
            self._backend.context(definition),
            ServerRequest(wire, user=_SERVER),
            WriteOptions(),
            lambda _: copied(tree),
            uid=metadata["uid"],
            part="status",
        )
        change.replaces = True
        await change.make()


def _written(used: Amounts) -> dict[str, str]:
    return {name: used[name].printed() for name in sorted(used)}


def _prefix(namespace: str) -> str:
    return f"core/resourcequotas/{namespace}/"


def _may_use_more(attributes: Attributes) -> bool:
    """Whether a write can increase the usage of a quota."""
    name, subresource = (attributes.definition.gvk.group, attributes.definition.resource), attributes.subresource
    if attributes.operation == "CREATE":
        return not subresource and name not in _IGNORED
    if name == PODS:
        obj, old = attributes.obj, attributes.old
        if subresource or obj is None or old is None:
            return subresource == "resize"
        return is_terminating(obj) != is_terminating(old)
    return name in _GROWING and (not subresource or (name == VOLUME_CLAIMS and subresource == "status"))
