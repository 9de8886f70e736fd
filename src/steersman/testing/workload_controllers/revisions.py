"""The ControllerRevisions of a StatefulSet or DaemonSet: its templates, oldest first.

Guarantees
- The newest revision contains the current template; returning to an old template makes its revision the newest.
- A revision gets the same name and data as from kube-controller-manager.
- Revisions in use by Pods are kept, and as many others as the history limit allows.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, cast

import msgspec

from steersman.controller import Context
from steersman.errors import AlreadyExists
from steersman.golang import printed_json
from steersman.kinds.apps_v1 import ControllerRevision, DaemonSet
from steersman.kinds.core_v1 import PodTemplateSpec
from steersman.kinds.meta_v1 import LabelSelector
from steersman.objects import Object, ObjectMeta, decode, owner_reference, to_json
from steersman.testing.workload_controllers.claims import candidates, claim
from steersman.testing.workload_controllers.hashes import fnv32, safe_encode, template_hash

#: The label with the revision of a Pod, or with the hash of a revision.
REVISION = "controller-revision-hash"
#: kube-controller-manager's label for the hash of a revision.
HASH = "controller.kubernetes.io/hash"
_PREFIX_CHARACTERS = 223


class History:
    """The revisions of one workload, sorted from old to new."""

    def __init__(self, ctx: Context, owner: Object, template: PodTemplateSpec, collisions: int | None) -> None:
        self._ctx = ctx
        self._owner = owner
        self._template = template
        self._labels = dict((template.metadata.labels if template.metadata is not None else None) or {})
        self.data: dict[str, Any] = {"spec": {"template": {**to_json(template), "$patch": "replace"}}}
        self.collisions = collisions
        self.revisions: list[ControllerRevision] = []

    async def read(self, selector: LabelSelector) -> None:
        """Find the revisions, adopting orphans."""
        found = await candidates(self._ctx, ControllerRevision, self._owner)
        self.revisions = sorted(await claim(self._ctx, self._owner, found, selector), key=_age)

    def digest(self) -> str:
        """The hash of the current template, by the rules of the workload's kind."""
        if isinstance(self._owner, DaemonSet):
            return template_hash(self._template, self.collisions)
        return safe_encode(str(fnv32(printed_json(self.data).encode(), str(self.collisions or 0).encode())))

    async def newest(self) -> ControllerRevision:
        """The revision of the current template, created or renumbered if necessary."""
        equal = [each for each in self.revisions if each.data == self.data]
        number = self.revisions[-1].revision + 1 if self.revisions else 1
        if not equal:
            return await self._create(number)
        last = equal[-1]
        if last.revision < self.revisions[-1].revision:
            last.revision = number
            last = await self._ctx.client.update(last)
            self.revisions.sort(key=_age)
        return last

    async def _create(self, number: int) -> ControllerRevision:
        owner = self._owner
        label = REVISION if isinstance(owner, DaemonSet) else HASH
        while True:
            digest = self.digest()
            revision = ControllerRevision(
                metadata=ObjectMeta(
                    name=f"{(owner.metadata.name or '')[:_PREFIX_CHARACTERS]}-{digest}",
                    namespace=owner.metadata.namespace,
                    labels={**self._labels, label: digest},
                    annotations=dict(owner.metadata.annotations or {}) or None,
                    owner_references=[owner_reference(owner)],
                ),
                data=self.data,
                revision=number,
            )
            try:
                made = await self._ctx.client.create(revision)
            except AlreadyExists:
                present = await self._ctx.client.live.find(ControllerRevision, revision.key)
                if present is not None and present.data == self.data:
                    return present
                self.collisions = (self.collisions or 0) + 1
            else:
                self.revisions.append(made)
                return made

    async def truncate(self, live: Collection[str], limit: int | None) -> bool:
        """Delete the oldest unused revisions beyond the limit; returns whether there were any."""
        spent = [each for each in self.revisions if each.metadata.name not in live]
        # Old revisions in use by Pods count against the limit of a DaemonSet, not against that of a StatefulSet.
        old = len(self.revisions) - 1 if isinstance(self._owner, DaemonSet) else len(spent)
        gone = spent[: max(0, old - (10 if limit is None else limit))]
        for each in gone:
            await self._ctx.client.delete(each, missing_ok=True)
        return bool(gone)


def _age(revision: ControllerRevision) -> tuple[Any, ...]:
    created = revision.metadata.creation_timestamp
    return revision.revision, created.timestamp() if created is not None else 0.0, revision.metadata.name


def template_of(revision: ControllerRevision) -> PodTemplateSpec:
    """The template in a revision."""
    tree = cast("dict[str, Any]", revision.data)["spec"]["template"]
    kept = {name: value for name, value in tree.items() if name != "$patch"}
    return decode(PodTemplateSpec, msgspec.json.encode(kept))


def by_name(revisions: Sequence[ControllerRevision], name: str | None) -> ControllerRevision | None:
    """The revision with this name."""
    return next((each for each in revisions if each.metadata.name == name), None)
