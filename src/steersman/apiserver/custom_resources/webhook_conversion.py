"""Conversion of custom resources by the webhook of their definition.

Guarantees
- The server checks an answer as kube-apiserver does: its uid, the number of objects, their kinds, versions, names and
  labels.
- A call converts many objects of a list, up to `PORTION_MAX` bytes. Converted objects are cached, up to `KEPT_MAX` bytes
  for each version.
- From the metadata that the webhook returns, only labels and annotations are used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, cast

import msgspec

from steersman.aio import new_uid
from steersman.apiserver.documents import encode_stored
from steersman.apiserver.errors import RequestRejected, unnamed
from steersman.apiserver.json_trees import decode_tree
from steersman.apiserver.registry.builtin.types.labels import annotations, labels
from steersman.apiserver.registry.definition import Tree
from steersman.apiserver.storage import Record
from steersman.apiserver.webhooks import CallFailed, WebhookCaller, WebhookTarget
from steersman.apiserver.webhooks.reviews import kind_problem
from steersman.errors import UNREADABLE
from steersman.golang import cannot_unmarshal, json_problem, json_type, quoted

KEPT_MAX: Final = 32 * 1024 * 1024
#: The answer to a call is bounded too, and converted objects may be longer.
PORTION_MAX: Final = 1024 * 1024
_SECONDS: Final = 30.0
_GROUP: Final = "apiextensions.k8s.io"
#: The fields of an answer, with their types.
_TYPES: Final = (
    ("uid", "types.UID", str),
    ("convertedObjects", "[]runtime.RawExtension", list),
    ("result", "v1.Status", dict),
)
_GO_TYPES: Final = {str: "string", int: "int64", float: "float64", bool: "bool", list: "[]interface {}"}
_encode: Final = msgspec.json.Encoder().encode


def _go_type(value: Any) -> str:
    """The type of a JSON value in Go's messages."""
    if isinstance(value, dict):
        return "map[string]interface {}"
    return next((name for kind, name in _GO_TYPES.items() if type(value) is kind), "<nil>")


class ConversionWebhook:
    """The webhook of one definition."""

    def __init__(self, caller: WebhookCaller, target: WebhookTarget, review_versions: list[str], group: str) -> None:
        self._caller = caller
        self._target = target
        self._review_versions = review_versions
        self.group = group

    def versions(
        self,
        version: str,
        storage: str,
        begins: bytes,
        read: Callable[[Tree], None],
        prune: Callable[[Tree, str], None],
    ) -> WebhookVersions:
        """The objects of the definition in one of its versions."""
        return WebhookVersions(self, version, storage, begins, read, prune)

    async def converted(self, trees: list[Tree], version: str) -> list[Tree]:
        """The objects in another version. Does not change their trees."""
        wanted = f"{self.group}/{version}"
        sent = [tree for tree in trees if tree["apiVersion"] != wanted]
        if not sent:
            return trees
        converted = iter(await self._called(sent, wanted))
        return [tree if tree["apiVersion"] == wanted else next(converted) for tree in trees]

    async def _called(self, trees: list[Tree], wanted: str) -> list[Tree]:
        words = f"conversion webhook for {trees[0]['apiVersion']}, Kind={trees[0]['kind']}"
        review = next((version for version in self._review_versions if version in {"v1", "v1beta1"}), None)
        if review is None:
            raise unnamed("no supported conversion review versions")
        uid = new_uid()
        request = {"uid": uid, "desiredAPIVersion": wanted, "objects": trees}
        empty: Tree = {"uid": "", "convertedObjects": [], "result": {"metadata": {}}}
        body: Tree = {
            "kind": "ConversionReview",
            "apiVersion": f"{_GROUP}/{review}",
            "request": request,
            "response": empty,
        }
        try:
            answer = await self._caller(self._target, _encode(body), timeout=_SECONDS)
            objects = _objects(answer, uid, review)
        except RequestRejected:
            raise
        except Exception as error:  # noqa: BLE001 - a custom webhook_caller may raise anything
            raise unnamed(f"{words} failed: {error}") from None
        if len(objects) != len(trees):
            raise unnamed(f"{words} returned {len(objects)} objects, expected {len(trees)}")
        return [_checked(words, tree, converted, wanted) for tree, converted in zip(trees, objects, strict=True)]


def _objects(body: bytes, uid: str, version: str) -> list[Any]:
    """The converted objects in an answer. Raises `CallFailed`."""
    try:
        tree: Any = decode_tree(body)
    except UNREADABLE as error:
        why = json_problem(body, error, "ConversionReview")
        raise CallFailed(f"couldn't get version/kind; json parse error: {why}") from None
    review = cast("Tree", tree) if isinstance(tree, dict) else {}
    group, _, review_version = str(review.get("apiVersion") or "").rpartition("/")
    if problem := kind_problem(review, _GROUP, version, "ConversionReview"):
        raise CallFailed(problem)
    if version == "v1" and (group, review_version, review.get("kind")) != (_GROUP, "v1", "ConversionReview"):
        got = f"{group}/{review_version}, Kind={review.get('kind') or ''}"
        raise CallFailed(f"expected webhook response of {_GROUP}/v1, Kind=ConversionReview, got {got}")
    response: Any = review.get("response")
    if not isinstance(response, dict):
        raise CallFailed("no response provided")
    answer = cast("Tree", response)
    for name, go_type, type_ in _TYPES:
        value: Any = answer.get(name)
        if value is not None and not isinstance(value, type_):
            raise CallFailed(cannot_unmarshal(json_type(value), go_type, f"ConversionResponse.response.{name}"))
    if version == "v1" and (answer.get("uid") or "") != uid:
        raise CallFailed(f"expected response.uid={quoted(uid)}, got {quoted(str(answer.get('uid') or ''))}")
    result: Tree = answer.get("result") or {}
    if result.get("status") != "Success":
        status = result.get("status") or ""
        raise CallFailed(result.get("message") or f"response.result.status was '{status}', not 'Success'")
    return answer.get("convertedObjects") or []


def _checked(words: str, tree: Tree, answer: Any, wanted: str) -> Tree:
    """Check a converted object, and return it with the metadata of the original."""
    if not isinstance(answer, dict):
        why = cannot_unmarshal(json_type(answer), "map[string]interface {}")
        raise unnamed("unexpected end of JSON input" if answer is None else why)
    converted = cast("Tree", answer)
    version, kind = str(converted.get("apiVersion") or ""), str(converted.get("kind") or "")
    if not kind:
        raise unnamed(f"Object 'Kind' is missing in '{_encode(converted).decode()}'")
    if version != wanted:
        why = f"invalid groupVersion (expected {wanted}, received {version})"
        raise unnamed(f"{words} returned invalid object at index 0: {why}")
    if kind != tree["kind"]:
        why = f"invalid kind (expected {tree['kind']}, received {kind})"
        raise unnamed(f"{words} returned invalid object at index 0: {why}")
    # In an apply that gives up fields, an object may lack its metadata.
    return converted | {"metadata": _metadata(words, tree.get("metadata") or {}, converted)}


def _metadata(words: str, before: Tree, converted: Tree) -> Tree:
    """The metadata of the original, with the labels and annotations of the converted object."""
    given: Any = converted.get("metadata")
    metadata = cast("Tree", given) if isinstance(given, dict) else {}
    for name, shown in (("name", "name"), ("namespace", "namespace"), ("uid", "UID")):
        old, new = before.get(name) or "", metadata.get(name) or ""
        if old != new:
            raise unnamed(f"{words} returned invalid object: must have the same {shown}: {old} != {new}")
    words = f"{words} returned invalid metadata"
    if "metadata" not in converted:
        raise unnamed(f"{words}: missing metadata in converted object")
    if not isinstance(given, dict):
        raise unnamed(f"{words}: invalid metadata of type {_go_type(given)} in converted object")
    kept = {name: value for name, value in before.items() if name not in {"labels", "annotations"}}
    for name, check, path in (
        ("labels", labels, "metadata.labels"),
        ("annotations", annotations, "metadata.annotation"),
    ):
        texts = _texts(words, metadata.get(name), name)
        if texts is None:
            continue
        if texts != before.get(name) and (problems := check(path, texts)):
            said = [str(problem) for problem in problems]
            raise unnamed(f"{words}: {said[0]}" if len(said) == 1 else f"{words}: [{', '.join(said)}]")
        kept[name] = texts
    return kept


def _texts(words: str, given: Any, name: str) -> dict[str, str] | None:
    """The labels or annotations in an answer; None if they are missing."""
    if given is None:
        return None
    if not isinstance(given, dict):
        why = f"invalid metadata.{name} of type {_go_type(given)} in converted object"
        raise unnamed(f"{words}: {why}")
    texts = cast("Tree", given)
    for key, value in texts.items():
        if not isinstance(value, str):
            why = f"metadata.{name}[{key}] must be a string, but is {_go_type(value)} in converted object"
            raise unnamed(f"{words}: {why}")
    return texts


def _portions(numbers: list[int], records: list[Record]) -> Iterator[list[int]]:
    """The numbers of records in portions of at most `PORTION_MAX` bytes, or of one record."""
    portion: list[int] = []
    size = 0
    for at in numbers:
        size += len(records[at].value)
        if portion and size > PORTION_MAX:
            yield portion
            portion, size = [], len(records[at].value)
        portion.append(at)
    if portion:
        yield portion


class WebhookVersions:
    """The objects of one definition in one of its versions."""

    def __init__(
        self,
        webhook: ConversionWebhook,
        version: str,
        storage: str,
        begins: bytes,
        read: Callable[[Tree], None],
        prune: Callable[[Tree, str], None],
    ) -> None:
        self._webhook = webhook
        self._version = version
        self._storage = storage
        #: The first bytes of every object that is stored in this version.
        self._begins = begins
        #: Prunes a stored object and fills in its defaults; prunes a converted object.
        self._read = read
        self._prune = prune
        #: The stored value and the converted object, by key and revisions.
        self._kept: dict[tuple[str, int, int], tuple[bytes, Record]] = {}
        self._size = 0

    def _known(self, record: Record) -> Record | None:
        """A stored object in this version from the cache; None if it is not cached."""
        value, converted = self._kept.get((record.key, record.created, record.modified), (b"", None))
        return converted if value == record.value else None

    async def readable(self, records: list[Record]) -> list[Record]:
        """Stored objects in this version."""
        converted = [record if record.value.startswith(self._begins) else self._known(record) for record in records]
        missing = [at for at, record in enumerate(converted) if record is None]
        for portion in _portions(missing, records):
            trees: list[Tree] = [decode_tree(records[at].value) for at in portion]
            for tree in trees:
                self._read(tree)
            for at, tree in zip(portion, await self._webhook.converted(trees, self._version), strict=True):
                self._prune(tree, self._version)
                converted[at] = self._keep(records[at], records[at].with_value(encode_stored(tree)))
        return [record for record in converted if record is not None]

    async def storable(self, tree: Tree) -> None:
        """Convert an object to the stored version, in place."""
        await self.change(tree, self._storage)

    async def converted(self, tree: Tree, version: str) -> Tree:
        """An object in another version, with all fields that the webhook returns."""
        (converted,) = await self._webhook.converted([tree], version)
        return converted

    async def change(self, tree: Tree, version: str) -> None:
        """Convert an object to another version, in place."""
        if tree["apiVersion"].rpartition("/")[2] == version:
            return
        converted = await self.converted(tree, version)
        self._prune(converted, version)
        tree.clear()
        tree.update(converted)

    def _keep(self, stored: Record, converted: Record) -> Record:
        key = (stored.key, stored.created, stored.modified)
        if stored.modified and key not in self._kept:
            self._kept[key] = stored.value, converted
            self._size += len(stored.value) + len(converted.value)
        while self._size > KEPT_MAX:
            value, oldest = self._kept.pop(next(iter(self._kept)))
            self._size -= len(value) + len(oldest.value)
        return converted
