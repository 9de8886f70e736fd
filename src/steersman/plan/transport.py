"""A transport for plans: reads from the server, tries writes as dry runs, and records their effects.

Guarantees
- Nothing is written. Only dry runs of writes are sent (see `steersman.plan.dry_runs`), and only to servers that support
  them; everything else is answered here, or rejected with a reason.
- A program sees its own plan: reading an object by name returns its planned state.
- Every write that would change something is recorded in the `PlannedObjects`, and so is every rejection with its message.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import Any, Unpack, cast

import msgspec
from multidict import CIMultiDict, CIMultiDictProxy

from steersman.aio import new_uid
from steersman.errors import ApiError
from steersman.kinds.registry import all_group_versions
from steersman.patches import JsonPatch, apply_merge_patch
from steersman.plan.diffs import Tree, part
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
from steersman.transport import BufferedResponse, Response, SendOptions, Transport, TransportWrapper
from steersman.wire import (
    APPLY_PATCH,
    JSON,
    JSON_PATCH,
    MERGE_PATCH,
    HttpRequest,
    ResourcePath,
    group_version_path,
    parse_path,
)

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
#: Statuses that every program must handle anyway: not found, conflict, expired, retry later.
_USUAL = frozenset({404, 409, 410, 429, 503, 504})
_BY_NAME = "metadata.name="
_NO_NAMESPACE = "not tried: its namespace does not exist yet"
_NO_OBJECT = "not tried: the object does not exist yet"
_NOT_GONE = "not tried: the object to be deleted still exists"
_ASKED_AGAIN = 6
_PAUSE = 0.5


class PlanTransport(TransportWrapper):
    """Another transport, through which nothing is written."""

    def __init__(self, inner: Transport, planned: PlannedObjects) -> None:
        super().__init__(inner)
        self._planned = planned
        self._locks: defaultdict[Location, asyncio.Lock] = defaultdict(asyncio.Lock)
        #: Whether the servers of groups outside Kubernetes support dry runs.
        self._tried: dict[tuple[str, str], bool] = {}

    async def send(self, request: HttpRequest, **options: Unpack[SendOptions]) -> Response:
        """Send a request if it changes nothing; see `Transport.send`."""
        if is_read(request):
            if not options.get("stream") and (known := await self._read(request)) is not None:
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
            return _answer(200 if path.name else 201, tree)
        if path.name is None and request.method == "DELETE":
            return await self._delete_many(request, path)
        if is_question(path) or says_dry_run(request):
            return await self._inner.send(dry_run_of(request, path, self._real(path, tree)), timeout=seconds)
        named = part(cast("Tree", tree), "metadata").get("name") if isinstance(tree, dict) else None
        place = Location.of(path, path.name or named)
        async with self._locks[place]:
            return await self._write(_Attempt(request, path, place, tree, seconds))

    async def close(self) -> None:
        """Close the inner transport."""
        await self._inner.close()

    # reading planned objects

    async def _read(self, request: HttpRequest) -> Response | None:
        path = parse_path(request.path)
        if path is None or (path.subresource is not None and path.subresource != "status"):
            return None
        if path.name is not None:
            known = self._planned.get(Location.of(path))
            if known is None:
                return None
            return _missing(path) if known.after is None else _answer(200, _as_asked(request, known.after))
        return await self._list_of_one(request, path)

    async def _list_of_one(self, request: HttpRequest, path: ResourcePath) -> Response | None:
        """Answer a list of one name, which is how a cache checks an object that it is unsure about."""
        query = dict(request.query)
        selector = query.get("fieldSelector", "")
        if not selector.startswith(_BY_NAME) or "," in selector or "watch" in query:
            return None
        known = self._planned.get(Location.of(path, selector.removeprefix(_BY_NAME)))
        if known is None:
            return None
        async with await self._inner.send(request) as response:
            body = await response.read()
        listed: Any = msgspec.json.decode(body) if response.status == 200 else None
        if not isinstance(listed, dict):
            return BufferedResponse(response.status, response.headers, body)
        items = [] if known.after is None else [_as_asked(request, known.after)]
        return _answer(200, {**cast("Tree", listed), "items": items})

    # writing

    async def _write(self, attempt: _Attempt) -> Response:
        planned = self._planned.get(attempt.place)
        if planned is not None and (planned.before is None or planned.after is None):
            answer = self._write_planned(attempt, planned)
            if answer is not None:
                return answer
        before = planned.before if planned is not None else None
        if planned is None and attempt.path.name is not None:
            before = await self._current(attempt)
        request = dry_run_of(attempt.request, attempt.path, self._real(attempt.path, attempt.tree))
        async with await self._inner.send(request, timeout=attempt.timeout) as response:
            body = await response.read()
        result = _tree(body)
        if response.status >= 300 or result is None:
            return self._not_done(attempt, response, body, result)
        if attempt.request.method == "DELETE":
            gone = result.get("kind") == "Status"
            shown = self._planned.deleted(attempt.place, before or {}, None if gone else result)
            return BufferedResponse(
                response.status, response.headers, body if shown is None else msgspec.json.encode(shown)
            )
        if not _same_kind(result, before, attempt):
            # a Scale, or another view of the object: its effect on other fields of the object is not shown
            self._planned.changed(attempt.place, before or {}, _scaled(before or {}, attempt, result))
            return BufferedResponse(response.status, response.headers, body)
        if before is None:
            place = attempt.place._replace(name=part(result, "metadata").get("name") or attempt.place.name)
            shown = self._planned.made(place, result, sent=attempt.tree)
        else:
            shown = self._planned.changed(attempt.place, before, result)
        return BufferedResponse(response.status, response.headers, msgspec.json.encode(shown))

    def _write_planned(self, attempt: _Attempt, planned: PlannedObject) -> Response | None:
        """Answer a write to an object that is only planned, or planned to be deleted; None to send a dry run."""
        place, path, method = attempt.place, attempt.path, attempt.request.method
        if planned.after is None:
            return self._make(attempt, _NOT_GONE) if method == "POST" or attempt.applies else _missing(path)
        if method == "DELETE":
            self._planned.deleted(place, {}, None)
            return _answer(200, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"})
        if method == "POST":
            return _answer(409, _status(409, "AlreadyExists", f"{path.resource} {place.name!r} already exists"))
        if attempt.applies:
            return self._make(attempt, _NO_NAMESPACE) if _NO_NAMESPACE in planned.notes else None
        result = attempt.made_of(planned.after)
        if result is None:
            return None
        sent = planned.sent or {}
        if path.subresource == "status":
            result = {**planned.after, "status": result.get("status")}
        else:
            sent = {**sent, **result}
        return _answer(200, self._planned.made(place, result, sent=sent, note=_NO_OBJECT))

    def _make(self, attempt: _Attempt, note: str) -> Response:
        """Answer a creation that the server cannot try."""
        place, tree = attempt.place, cast("Tree", attempt.tree)
        own: Tree = {"name": place.name, "uid": new_uid()}
        if place.namespace:
            own["namespace"] = place.namespace
        made = {**tree, "metadata": {**part(tree, "metadata"), **own}}
        return _answer(201, self._planned.made(place, made, sent=tree, note=note))

    def _not_done(self, attempt: _Attempt, response: Response, body: bytes, result: Tree | None) -> Response:
        creates = attempt.request.method == "POST" or attempt.applies
        if response.status == 404 and creates and self._planned.plans_namespace(attempt.path.namespace):
            return self._make(attempt, _NO_NAMESPACE)
        if response.status not in _USUAL:
            words = str((result or {}).get("message") or f"the server returned {response.status}")
            self._planned.rejected(_what(attempt.request, attempt.path, attempt.tree), words)
        return BufferedResponse(response.status, response.headers, body)

    async def _delete_many(self, request: HttpRequest, path: ResourcePath) -> Response:
        """Find out which objects would be deleted, with a list instead of a deletion."""
        headers = tuple(pair for pair in request.headers if pair[0].lower() != "content-type")
        selection = tuple(pair for pair in request.query if pair[0] in {"labelSelector", "fieldSelector"})
        async with await self._inner.send(HttpRequest("GET", path.path, selection, headers)) as response:
            body = await response.read()
        listed = _tree(body)
        if response.status != 200 or listed is None:
            self._planned.rejected(_what(request, path, {}), str((listed or {}).get("message", response.status)))
            return BufferedResponse(response.status, response.headers, body)
        kind = str(listed.get("kind", "")).removesuffix("List")
        items = [] if says_dry_run(request) else cast("list[Tree]", listed.get("items") or [])
        for item in items:
            metadata = part(item, "metadata")
            place = Location(path.group, path.resource, metadata.get("namespace") or "", metadata["name"])
            self._planned.deleted(place, {"apiVersion": listed.get("apiVersion"), "kind": kind, **item}, None)
        return BufferedResponse(200, response.headers, body)

    async def _current(self, attempt: _Attempt) -> Tree | None:
        """The object on the server; None if it does not exist or is unreadable."""
        headers = [pair for pair in attempt.request.headers if pair[0].lower() not in {"accept", "content-type"}]
        path = msgspec.structs.replace(attempt.path, subresource=None).path
        request = HttpRequest("GET", path, headers=(*headers, ("Accept", JSON)))
        async with await self._inner.send(request, timeout=attempt.timeout) as response:
            return _tree(await response.read()) if response.status == 200 else None

    def _real(self, path: ResourcePath, tree: Any) -> Any:
        """The body with the server's resource versions instead of planned ones."""
        if isinstance(tree, list):
            operations = cast("list[Tree]", tree)
            known = self._planned.get(Location.of(path))
            version = known.real_version if known is not None else ""
            return [{**each, "value": version} if _is_planned(each.get("value")) else each for each in operations]
        if not isinstance(tree, dict):
            return tree
        found = cast("Tree", tree)
        for field in ("metadata", "preconditions"):
            inside = part(found, field)
            if _is_planned(inside.get("resourceVersion")):
                known = self._planned.get(Location.of(path))
                rest = {name: value for name, value in inside.items() if name != "resourceVersion"}
                version = known.real_version if known is not None else ""
                found = {**found, field: {**rest, "resourceVersion": version} if version else rest}
        return found

    def _reject(self, request: HttpRequest, words: str) -> Response:
        path = parse_path(request.path)
        try:
            tree = tree_of(request)
        except NotTried:
            tree = {}
        self._planned.rejected(_what(request, path, tree), words)
        return _answer(405, _status(405, "MethodNotAllowed", words))

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


class _Attempt(msgspec.Struct, frozen=True):
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


def _answer(status: int, tree: Any) -> BufferedResponse:
    return BufferedResponse(status, CIMultiDictProxy(CIMultiDict({"Content-Type": JSON})), msgspec.json.encode(tree))


def _status(code: int, reason: str, message: str) -> Tree:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
        "details": {},
    }


def _missing(path: ResourcePath) -> BufferedResponse:
    resource = f"{path.resource}.{path.group}" if path.group else path.resource
    status = _status(404, "NotFound", f'{resource} "{path.name}" not found')
    return _answer(404, {**status, "details": {"name": path.name, "group": path.group, "kind": path.resource}})


def _tree(body: bytes) -> Tree | None:
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return cast("Tree", found) if isinstance(found, dict) else None


def _as_asked(request: HttpRequest, tree: Tree) -> Tree:
    """An object in the form that a read requests."""
    if "as=PartialObjectMetadata" not in (request.header("Accept") or "").replace(" ", ""):
        return tree
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": tree.get("metadata") or {}}


def _same_kind(result: Tree, before: Tree | None, attempt: _Attempt) -> bool:
    return not attempt.path.subresource or result.get("kind") == (before or {}).get("kind")


def _scaled(before: Tree, attempt: _Attempt, result: Tree) -> Tree:
    """An object after a change of its scale."""
    if attempt.path.subresource != "scale":
        return before
    return {**before, "spec": {**part(before, "spec"), "replicas": part(result, "spec").get("replicas", 0)}}


def _is_planned(version: Any) -> bool:
    return isinstance(version, str) and version.isdigit() and int(version) > PLANNED_VERSIONS


def _what(request: HttpRequest, path: ResourcePath | None, tree: Any) -> str:
    """A write as text: ``create Deployment default/web``."""
    if path is None:
        return f"{request.method} {request.path}"
    told: Tree = cast("Tree", tree) if isinstance(tree, dict) else {}
    metadata = part(told, "metadata")
    name = path.name or metadata.get("name") or metadata.get("generateName") or "(all)"
    key = f"{path.namespace}/{name}" if path.namespace else name
    kind = told.get("kind") if request.method != "DELETE" and not path.subresource else None
    verb = "apply" if (request.header("Content-Type") or "").startswith(APPLY_PATCH) else _VERBS.get(request.method)
    where = f"{path.resource}/{path.subresource}" if path.subresource else path.resource
    return f"{verb or request.method} {kind or where} {key}"
