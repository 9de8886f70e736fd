"""Mutating webhooks: each may change the object with a JSON patch.

Guarantees
- Webhooks are called one after another, in the order of `Configurations`. A webhook with ``reinvocationPolicy:
  IfNeeded`` is called once more if a later one changed the object.
- A patched object is read like the body of a request: unknown fields are dropped, wrong types are rejected, and
  defaults are filled in.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final, cast

import msgspec

from steersman.apiserver.admission import Attributes
from steersman.apiserver.decoding.patch_result import read_patched
from steersman.apiserver.documents import copied
from steersman.apiserver.errors import RequestRejected, bad_request, internal, unnamed
from steersman.apiserver.registry.definition import Definition, Tree
from steersman.apiserver.webhooks.configurations import EXEMPT, GROUP, Webhook
from steersman.apiserver.webhooks.hook_call import HookPlugin, call_hook, chosen, failed_calling, sent
from steersman.apiserver.webhooks.json_patches import apply_patch, completed
from steersman.apiserver.webhooks.matches import Subject, converted, subject_of
from steersman.apiserver.webhooks.targets import CallFailed
from steersman.errors import UNREADABLE
from steersman.golang import printed_json, quoted
from steersman.patches import PatchError, growth_of, json_equal

_MUTATION: Final = "mutation.webhook.admission.k8s.io/"


class Rounds:
    """State of one write between the first and the second round of webhooks, or of policies."""

    def __init__(self) -> None:
        self.output: Tree | None = None
        #: Webhooks to call again if a later one changes the object, and those that will be called again.
        self.called: set[tuple[str, str, int | str]] = set()
        self.again: set[tuple[str, str, int | str]] = set()
        #: Whether a policy patched the object in this round, even without effect.
        self.is_patched = False

    def require(self) -> None:
        """Require a second call of all webhooks in `called`."""
        self.again |= self.called
        self.called = set()


class MutatingWebhooks(HookPlugin):
    """The plugin MutatingAdmissionWebhook."""

    async def admit(self, attributes: Attributes) -> None:
        """Call the webhooks that match a write."""
        hooks = (await self._configurations.current()).mutating
        if not hooks or is_exempt(attributes):
            return
        attributes.state = attributes.state or {}
        rounds: Rounds = attributes.state.setdefault(MutatingWebhooks, Rounds())
        if attributes.is_reinvocation and rounds.output != attributes.obj:
            rounds.require()
        subject = subject_of(attributes)
        for index, hook in enumerate(hooks):
            target = await chosen(self._registry, self._workers, hook, subject)
            if target is None or (attributes.is_reinvocation and hook.key not in rounds.again):
                continue
            await self._call(hook, index, subject, target, rounds)
        rounds.output = copied(attributes.obj)

    async def _call(self, hook: Webhook, index: int, subject: Subject, target: Definition, rounds: Rounds) -> None:
        attributes = subject.attributes
        where = f"round_{int(attributes.is_reinvocation)}_index_{index}"
        changed = False
        try:
            changed = await self._changed(hook, subject, target)
        except CallFailed as failure:
            if not hook.ignores_failures:
                raise failed_calling(hook, failure) from None
            attributes.request.annotations.setdefault(f"failed-open.{_MUTATION}{where}", hook.name)
        finally:
            annotation = {"configuration": hook.configuration, "webhook": hook.name, "mutated": changed}
            attributes.request.annotations.setdefault(f"{_MUTATION}{where}", printed_json(annotation))
        if changed:
            rounds.require()
            attributes.wants_reinvocation = True
        if hook.reinvoked:
            rounds.called.add(hook.key)

    async def _changed(self, hook: Webhook, subject: Subject, target: Definition) -> bool:
        """Call a webhook and apply its patch. Returns whether the object changed."""
        attributes = subject.attributes
        source = attributes.definition
        obj, old = await sent(subject, target, mutating=True)
        verdict = await call_hook(self._caller, self._workers, hook, subject, target, (obj, old), mutating=True)
        if not verdict.patch:
            return False
        try:
            operations = await self._workers.run(partial(_operations, verdict.patch), size=len(verdict.patch))
        except (*UNREADABLE, PatchError) as error:
            raise CallFailed(f"received undecodable patch in webhook response: {error}") from None
        if not operations:
            return False
        if obj is None:
            why = f"admission webhook {quoted(hook.name)} attempted to modify the object, which is not supported for this operation"
            raise internal(why)
        if verdict.patch_type != "JSONPatch":
            raise CallFailed(f"unsupported patch type {quoted(verdict.patch_type)}")
        size = attributes.request.size + growth_of(verdict.patch)
        form = attributes.view.definition if attributes.view else target
        patched = await self._workers.run(partial(_patched, attributes, form, obj, operations), size=size)
        if patched is None:
            return False
        # The rest of the request handles a larger object.
        attributes.request.size = size
        if attributes.view is None and target is not source:
            patched = cast("Tree", await converted(patched, target, source))
        take_mutated(attributes, patched)
        return True


def is_exempt(attributes: Attributes) -> bool:
    """Whether a write skips webhooks and policies: a write of their own objects, or the deletion of an evicted Pod."""
    if attributes.operation == "DELETE" and attributes.subresource == "eviction":
        return True
    gvk = attributes.definition.gvk
    return gvk.group == GROUP and gvk.kind in EXEMPT


def _operations(patch: bytes) -> list[Any]:
    tree: Any = msgspec.json.decode(patch)
    if tree is not None and not isinstance(tree, list):
        raise PatchError("json: cannot unmarshal object into Go value of type jsonpatch.Patch")
    return completed(cast("list[Any]", tree or []))


def _patched(attributes: Attributes, definition: Definition, obj: Tree, operations: list[Any]) -> Tree | None:
    """The object after a patch; None if the patch changes nothing."""
    try:
        made = apply_patch(copied(obj), operations)
    except PatchError as error:
        raise internal(str(error)) from None
    patched = read_mutated(attributes, definition, made)
    return None if json_equal(patched, obj) else patched


def read_mutated(attributes: Attributes, definition: Definition, tree: Any, directive: str = "Ignore") -> Tree:
    """Check a patched object against its type and fill in defaults. ``directive`` "Strict" rejects unknown fields."""
    clears_managers = isinstance(tree, dict) and _lists_no_manager(cast("Tree", tree).get("metadata"))
    try:
        made = read_patched(definition, attributes.request, tree, directive)
    except RequestRejected as refused:
        said = refused.status.message.removeprefix("the patch makes no object: ")
        # The patch may also have changed the kind.
        said = said.partition(f" cannot be handled as a {definition.gvk.kind}: ")[2] or said
        raise unnamed(said) if said.endswith("unknown conversion") else internal(said) from None
    definition.strategy.default(made)
    if clears_managers:
        made["metadata"].pop("managedFields", None)
    return made


def _lists_no_manager(metadata: Any) -> bool:
    return isinstance(metadata, dict) and cast("Tree", metadata).get("managedFields") == []


def take_mutated(attributes: Attributes, patched: Tree) -> None:
    """Make a patched object the object of a write."""
    obj, view = attributes.obj, attributes.view
    assert obj is not None
    if view is not None and view.take is not None:
        view.take(obj, patched)
        return
    if attributes.definition.namespaced:
        namespace = patched["metadata"].setdefault("namespace", attributes.namespace)
        if namespace != attributes.namespace:
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    else:
        patched["metadata"].pop("namespace", None)
    # The write has references to both dicts, so they are changed in place.
    metadata: Tree = obj["metadata"]
    metadata.clear()
    metadata.update(patched["metadata"])
    obj.clear()
    obj.update(patched)
    obj["metadata"] = metadata
