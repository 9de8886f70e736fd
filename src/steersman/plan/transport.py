"""A transport for plans: reads from the server, tries writes as dry runs, and records their effects.

Guarantees
- Nothing is written. Only dry runs of writes are sent (see `steersman.plan.dry_runs`), and only to servers that support
  them; everything else is answered here, or rejected with a reason.
- A program sees its own plan (see `steersman.plan.planned_reads`), and a write that expects another state than the
  planned one conflicts.
- Every write that would change something is recorded in the `PlannedObjects`, and so is every rejection with its message.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import Any, Unpack, cast

import msgspec

from steersman.client import NO_VERSION, is_gone
from steersman.errors import ApiError
from steersman.kinds.registry import all_group_versions
from steersman.patches import JsonPatch, JsonPatchError, apply_merge_patch, merge_patch_between
from steersman.plan.dry_runs import (
    NotTried,
    dry_run_of,
    is_event,
    is_question,
    is_read,
    place_of,
    says_dry_run,
    tree_of,
)
from steersman.plan.planned_objects import PLANNED_VERSIONS, Location, PlannedObject, PlannedObjects
from steersman.plan.planned_reads import PlannedReads, answer, failure, missing, tree_in
from steersman.plan.renamed_owners import renamed_owners, senders, with_owner
from steersman.plan.stand_ins import planned_uid, with_stand_ins
from steersman.plan.trees import Tree, merged, part
from steersman.transport import BufferedResponse, Response, SendOptions, Transport, TransportWrapper
from steersman.wire import (
    APPLY_PATCH,
    JSON,
    JSON_PATCH,
    MERGE_PATCH,
    WRITE_VERBS,
    HttpRequest,
    ResourcePath,
    group_version_path,
    parse_path,
)

#: Statuses that every program must handle anyway: not found, conflict, expired, retry later.
_USUAL = frozenset({404, 409, 410, 429, 503, 504})
_NO_NAMESPACE = "not tried: its namespace does not exist yet"
_NO_OBJECT = "not tried: the object does not exist yet"
_NOT_GONE = "not tried: the object to be deleted still exists"
_FAILED_TEST = "the server rejected our request due to an error in our request"
#: Fields that only the server sets.
_SERVER_FIELDS = ("resourceVersion", "managedFields", "generation")
_ASKED_AGAIN = 6
_PAUSE = 0.5


class PlanTransport(TransportWrapper):
    """Another transport, through which nothing is written."""

    def __init__(self, inner: Transport, planned: PlannedObjects) -> None:
        super().__init__(inner)
        self._planned = planned
        self._reads = PlannedReads(inner, planned)
        self._locks: defaultdict[Location, asyncio.Lock] = defaultdict(asyncio.Lock)
        #: Whether the servers of groups outside Kubernetes support dry runs.
        self._tried: dict[tuple[str, str], bool] = {}

    async def send(self, request: HttpRequest, **options: Unpack[SendOptions]) -> Response:
        """Send a request if it changes nothing; see `Transport.send`."""
        if is_read(request):
            if (known := await self._reads.read(request)) is not None:
                return known
            return await self._inner.send(request, **options)
        try:
            path = place_of(request)
            tree = tree_of(request)
            if not is_event(path):
                await self._check_known(request, path)
        except NotTried as reason:
            return self._reject(request, str(reason))
        return await self._try(request, path, tree, options.get("timeout"))

    async def _try(self, request: HttpRequest, path: ResourcePath, tree: Any, seconds: float | None) -> Response:
        if is_event(path):
            return answer(200 if path.name else 201, tree)
        if path.name is None and request.method == "DELETE":
            return await self._delete_many(request, path)
        if is_question(path) or says_dry_run(request):
            return await self._inner.send(dry_run_of(request, path, self._real(path, tree)), timeout=seconds)
        named = part(cast("Tree", tree), "metadata").get("name") if isinstance(tree, dict) else None
        place = Location.of(path, path.name or named)
        async with self._locks[place]:
            return await self._write(_ObjectWrite(request, path, place, tree, seconds))

    async def close(self) -> None:
        """Close the inner transport."""
        await self._inner.close()

    # writing

    async def _write(self, write: _ObjectWrite) -> Response:
        planned = self._planned.get(write.place)
        if planned is not None and (known := self._write_planned(write, planned)) is not None:
            return known
        before = planned.before if planned is not None else None
        if planned is None and write.path.name is not None:
            before = await self._current(write)
        if planned is not None and before is not None and planned.after is not None:
            try:
                write = write.rebased(before, planned.after)
            except JsonPatchError:
                return answer(422, failure(422, "Invalid", _FAILED_TEST))
        if planned is not None and write.content_type == APPLY_PATCH:
            response, body, result = await self._applied(write, planned)
        else:
            response, body, result = await self._sent(write, write.request)
        if response.status >= 300 or result is None:
            return self._not_done(write, response, body, result)
        shown = self._record(write, before, response.status, body, result)
        return BufferedResponse(
            response.status, response.headers, body if shown is None else msgspec.json.encode(shown)
        )

    async def _sent(self, write: _ObjectWrite, request: HttpRequest) -> tuple[Response, bytes, Tree | None]:
        """Send a write as a dry run."""
        request = dry_run_of(request, write.path, self._real(write.path, write.tree))
        async with await self._inner.send(request, timeout=write.timeout) as response:
            body = await response.read()
        return response, body, tree_in(body)

    async def _applied(self, write: _ObjectWrite, planned: PlannedObject) -> tuple[Response, bytes, Tree | None]:
        """Send an apply as a dry run, under the names that its fields have on the server."""
        before, subresource = planned.before or {}, write.path.subresource or ""
        manager = write.field_manager
        renamed = renamed_owners(before, planned.after or {}, manager, subresource)
        first, *others = senders(before, renamed, manager, subresource)
        response, body, result = await self._sent(write, write.sent_by(first))
        for name in others:
            _, _, other = await self._sent(write, write.sent_by(name))
            if result is not None and other is not None and other.get("kind") == result.get("kind"):
                result = cast("Tree", merged(before, result, other))
        return response, body, with_owner(result, renamed, manager) if result is not None and renamed else result

    def _record(self, write: _ObjectWrite, before: Tree | None, status: int, body: bytes, result: Tree) -> Tree | None:
        """Record what the server would do; returns the object to answer with, or None for the server's own answer."""
        if write.request.method == "DELETE" and (is_gone(body) or not _is_deleting(before)):
            return self._planned.deleted(write.place, before or {}, None if is_gone(body) else result)
        if not _same_kind(result, before, write):
            # a Scale, or another view of the object: its effect on other fields of the object is not shown
            self._planned.changed(write.place, before or {}, _scaled(before or {}, write, result))
            return None
        if before is None:
            sent = cast("Tree", write.tree)
            place = write.place
            if status == 201:
                place = place._replace(name=place.name or self._planned.generated_name(place, sent))
                result = with_stand_ins(result, sent, place.name, *place[:3])
            return self._planned.made(place, result, sent=sent)
        if _ends(before, result):
            self._planned.deleted(write.place, before, None)
            # without a version, the cache reads it again and finds that it is gone
            return {**result, "metadata": {**part(result, "metadata"), "resourceVersion": ""}}
        return self._planned.changed(write.place, before, result)

    def _write_planned(self, write: _ObjectWrite, planned: PlannedObject) -> Response | None:
        """Answer a write to an object that is only planned, or planned to be deleted; None to send a dry run."""
        place, path, method = write.place, write.path, write.request.method
        if planned.after is None and (method == "POST" or write.applies):
            return self._make(write, _NOT_GONE) if planned.before is not None else None
        if planned.after is None:
            return missing(path)
        if write.expects_other(part(planned.after, "metadata")):
            words = "the object has been modified; please apply your changes to the latest version and try again"
            message = f'Operation cannot be fulfilled on {path.resource} "{place.name}": {words}'
            return answer(409, failure(409, "Conflict", message))
        return None if planned.before is not None else self._write_made(write, planned, planned.after)

    def _write_made(self, write: _ObjectWrite, planned: PlannedObject, after: Tree) -> Response | None:
        """Answer a write to an object that only the plan creates; None to send a dry run."""
        place, path, method = write.place, write.path, write.request.method
        if method == "DELETE":
            self._planned.deleted(place, {}, None)
            details = {"name": place.name, "kind": path.resource, "uid": part(after, "metadata").get("uid")}
            success: Tree = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
            return answer(200, {**success, "details": details})
        if method == "POST":
            return answer(409, failure(409, "AlreadyExists", f"{path.resource} {place.name!r} already exists"))
        if write.applies:
            return self._make(write, _NO_NAMESPACE) if _NO_NAMESPACE in planned.notes else None
        result = write.made_of(after)
        if result is None:
            return None
        sent = planned.sent or {}
        if path.subresource == "status":
            result = {**after, "status": result.get("status")}
        else:
            sent = {**sent, **result}
        return answer(200, self._planned.made(place, result, sent=sent, note=_NO_OBJECT))

    def _make(self, write: _ObjectWrite, note: str) -> Response:
        """Answer a creation that the server cannot try."""
        place, tree = write.place, cast("Tree", write.tree)
        place = place._replace(name=place.name or self._planned.generated_name(place, tree))
        own: Tree = {"name": place.name, "uid": planned_uid(*place)}
        if place.namespace:
            own["namespace"] = place.namespace
        made = {**tree, "metadata": {**part(tree, "metadata"), **own}}
        return answer(201, self._planned.made(place, made, sent=tree, note=note))

    def _not_done(self, write: _ObjectWrite, response: Response, body: bytes, result: Tree | None) -> Response:
        creates = write.request.method == "POST" or write.applies
        if response.status == 404 and creates and self._planned.plans_namespace(write.path.namespace):
            return self._make(write, _NO_NAMESPACE)
        if response.status not in _USUAL:
            words = str((result or {}).get("message") or f"the server returned {response.status}")
            self._planned.rejected(_what(write.request, write.path, write.tree), words)
        return BufferedResponse(response.status, response.headers, body)

    async def _delete_many(self, request: HttpRequest, path: ResourcePath) -> Response:
        """Try the deletion of each object in a collection, as the server would delete them: one by one."""
        headers = tuple(pair for pair in request.headers if pair[0].lower() != "content-type")
        selection = tuple(pair for pair in request.query if pair[0] in {"labelSelector", "fieldSelector"})
        ask = HttpRequest("GET", path.path, selection, headers)
        async with await self._reads.read(ask) or await self._inner.send(ask) as response:
            body = await response.read()
        listed = tree_in(body)
        if response.status != 200 or listed is None:
            self._planned.rejected(_what(request, path, {}), str((listed or {}).get("message", response.status)))
            return BufferedResponse(response.status, response.headers, body)
        items = [] if says_dry_run(request) else cast("list[Tree]", listed.get("items") or [])
        for item in items:
            metadata = part(item, "metadata")
            one = msgspec.structs.replace(path, name=metadata["name"], namespace=metadata.get("namespace"))
            deletion = HttpRequest("DELETE", one.path, headers=request.headers, body=request.body)
            async with await self._try(deletion, one, tree_of(request), None) as outcome:
                if outcome.status >= 300 and outcome.status != 404:
                    return outcome
        return BufferedResponse(200, response.headers, body)

    async def _current(self, write: _ObjectWrite) -> Tree | None:
        """The object on the server; None if it does not exist or is unreadable."""
        headers = [pair for pair in write.request.headers if pair[0].lower() not in {"accept", "content-type"}]
        path = msgspec.structs.replace(write.path, subresource=None).path
        request = HttpRequest("GET", path, headers=(*headers, ("Accept", JSON)))
        async with await self._inner.send(request, timeout=write.timeout) as response:
            return tree_in(await response.read()) if response.status == 200 else None

    def _real(self, path: ResourcePath, tree: Any) -> Any:
        """The body with the server's resource versions instead of planned ones."""
        if isinstance(tree, list):
            operations = cast("list[Tree]", tree)
            known = self._planned.get(Location.of(path))
            version = known.real_version if known is not None else ""
            return [
                {**operation, "value": version} if _is_planned(operation.get("value")) else operation
                for operation in operations
            ]
        known = self._planned.get(Location.of(path))
        if not isinstance(tree, dict) or known is None or known.after is None:
            return cast("Any", tree)
        found = cast("Tree", tree)
        for field in ("metadata", "preconditions"):
            inside = part(found, field)
            if known.before is None:
                # the server has no such object, so it has neither its version nor its uid
                real = {name: value for name, value in inside.items() if name not in {"resourceVersion", "uid"}}
            elif _is_planned(inside.get("resourceVersion")):
                real = {**inside, "resourceVersion": known.real_version}
            else:
                continue
            if field in found:
                found = {**found, field: real}
        return found

    def _reject(self, request: HttpRequest, words: str) -> Response:
        path = parse_path(request.path)
        try:
            tree = tree_of(request)
        except NotTried:
            tree = {}
        self._planned.rejected(_what(request, path, tree), words)
        return answer(405, failure(405, "MethodNotAllowed", words))

    async def _check_known(self, request: HttpRequest, path: ResourcePath) -> None:
        """Reject writes to a server without dry runs: an aggregated server may serve the group."""
        if path.group in {version.group for version in all_group_versions()}:
            return
        key = (path.group, path.version)
        if key not in self._tried:
            self._tried[key] = await self._knows_dry_runs(request, path)
        if not self._tried[key]:
            raise NotTried(
                f"the server of {path.group}/{path.version} does not declare support for dry runs, and a plan sends"
                " nothing else"
            )

    async def _knows_dry_runs(self, request: HttpRequest, path: ResourcePath) -> bool:
        headers = [pair for pair in request.headers if pair[0].lower() not in {"accept", "content-type"}]
        document = f"/openapi/v3{group_version_path(path.group, path.version)}"
        ask = HttpRequest("GET", document, headers=(*headers, ("Accept", JSON)))
        for _ in range(_ASKED_AGAIN):  # a kind installed just now is described a moment later
            try:
                async with await self._inner.send(ask) as response:
                    body = await response.read()
            except ApiError:
                return False
            if response.status == 200:
                return b'"dryRun"' in body
            await asyncio.sleep(_PAUSE)
        return False


class _ObjectWrite(msgspec.Struct, frozen=True):
    """A write to one object."""

    request: HttpRequest
    path: ResourcePath
    place: Location
    tree: Any
    timeout: float | None

    @property
    def content_type(self) -> str:
        return (self.request.header("Content-Type") or "").partition(";")[0].strip()

    @property
    def applies(self) -> bool:
        """Whether it is a server-side apply of the object itself, which creates a missing object."""
        return self.content_type == APPLY_PATCH and not self.path.subresource

    @property
    def field_manager(self) -> str:
        return dict(self.request.query).get("fieldManager", "")

    def sent_by(self, manager: str) -> HttpRequest:
        """The request under another name."""
        query = tuple((name, manager if name == "fieldManager" else value) for name, value in self.request.query)
        return msgspec.structs.replace(self.request, query=query)

    def expects_other(self, metadata: Tree) -> bool:
        """Whether it requires a uid or a version that the object does not have."""
        sent = self.tree
        tree: Tree = cast("Tree", sent) if isinstance(sent, dict) else {}
        expected = part(tree, "preconditions" if self.request.method == "DELETE" else "metadata")
        uid, version = expected.get("uid"), expected.get("resourceVersion")
        return bool(uid and uid != metadata.get("uid")) or bool(version and version != metadata.get("resourceVersion"))

    def rebased(self, before: Tree, planned: Tree) -> _ObjectWrite:
        """A JSON patch of an object with planned changes as a merge patch of the object on the server, ``before``.

        The patch may test or extend what only the plan has, such as a finalizer of another controller.
        Raises `JsonPatchError` if one of its tests fails.
        """
        if self.content_type != JSON_PATCH or self.path.subresource not in {None, "status"}:
            return self
        wanted = JsonPatch.parse(self.tree).apply(planned)
        headers = tuple(pair for pair in self.request.headers if pair[0].lower() != "content-type")
        request = msgspec.structs.replace(self.request, headers=(*headers, ("Content-Type", MERGE_PATCH)))
        tree = merge_patch_between(_sendable(before), _sendable(wanted))
        return msgspec.structs.replace(self, request=request, tree=tree)

    def made_of(self, tree: Tree) -> Tree | None:
        """Apply the write to an object that exists only in the plan; None if only a server can."""
        if self.request.method == "PUT":
            return self.tree
        match self.content_type:
            case t if t == JSON_PATCH:
                return JsonPatch.parse(self.tree).apply(tree)
            case t if t in {MERGE_PATCH, APPLY_PATCH}:
                return apply_merge_patch(tree, self.tree)
            case _:
                return None


def _sendable(tree: Tree) -> Tree:
    metadata = {name: value for name, value in part(tree, "metadata").items() if name not in _SERVER_FIELDS}
    return {**tree, "metadata": metadata}


def _same_kind(result: Tree, before: Tree | None, write: _ObjectWrite) -> bool:
    return not write.path.subresource or result.get("kind") == (before or {}).get("kind")


def _scaled(before: Tree, write: _ObjectWrite, result: Tree) -> Tree:
    """An object after a change of its scale."""
    if write.path.subresource != "scale":
        return before
    return {**before, "spec": {**part(before, "spec"), "replicas": part(result, "spec").get("replicas", 0)}}


def _is_deleting(tree: Tree | None) -> bool:
    return bool(part(tree, "metadata").get("deletionTimestamp"))


def _ends(before: Tree, result: Tree) -> bool:
    """Whether a write removes the last finalizer of an object that is being deleted, which ends it."""
    had, has = part(before, "metadata"), part(result, "metadata")
    deleting = bool(has.get("deletionTimestamp")) and not has.get("deletionGracePeriodSeconds")
    return deleting and bool(had.get("finalizers")) and not has.get("finalizers")


def _is_planned(version: Any) -> bool:
    return version != NO_VERSION and isinstance(version, str) and version.isdigit() and int(version) > PLANNED_VERSIONS


def _what(request: HttpRequest, path: ResourcePath | None, tree: Any) -> str:
    """A write as text: ``create Deployment default/web``."""
    if path is None:
        return f"{request.method} {request.path}"
    obj: Tree = cast("Tree", tree) if isinstance(tree, dict) else {}
    metadata = part(obj, "metadata")
    name = path.name or metadata.get("name") or metadata.get("generateName") or "(all)"
    key = f"{path.namespace}/{name}" if path.namespace else name
    kind = obj.get("kind") if request.method != "DELETE" and not path.subresource else None
    applies = (request.header("Content-Type") or "").startswith(APPLY_PATCH)
    verb = "apply" if applies else WRITE_VERBS.get(request.method, request.method)
    return f"{verb} {kind or path.rbac_resource} {key}"
