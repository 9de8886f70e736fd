"""Shard selectors of requests: expressions in CEL, as kube-apiserver reads them.

Guarantees
- An expression that kube-apiserver accepts has the same ranges; another one is rejected with its message.
- Without the feature, a selector is ignored, whatever its text, as by kube-apiserver.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from steersman.apiserver.errors import RequestRejected, unnamed
from steersman.apiserver.feature_gates import FeatureGates
from steersman.apiserver.request import ServerRequest
from steersman.wire import (
    SHARD_PARAMETER,
    HashRange,
    InvalidShardSelector,
    ShardField,
    ShardSelector,
    first_values,
    read_shard_bound,
    read_shard_field,
)

if TYPE_CHECKING:
    from steersman.cel import CallArgument

_FUNCTION = "shardRange"


def requested_shards(request: ServerRequest, features: FeatureGates) -> ShardSelector | None:
    """The shard selector of a list or a watch; None if it selects everything."""
    if not features.sharded_list_and_watch:
        return None
    text = first_values(request.wire.query).get(SHARD_PARAMETER, "")
    if not text:
        return None
    try:
        return _parsed(text.strip())
    except InvalidShardSelector as error:
        raise _refused(str(error)) from None


def _refused(words: str) -> RequestRejected:
    """kube-apiserver's answer: it has no reason for this error, so it is one of its own."""
    return unnamed(f"invalid shard selector: {words}")


def _parsed(text: str) -> ShardSelector:
    if not text:
        raise InvalidShardSelector("empty shard selector is not allowed; omit the parameter for unfiltered lists")
    from steersman.cel import NotDisjunction, disjoined_calls  # noqa: PLC0415 - few requests have a selector

    try:
        return ShardSelector.of([_read(call) for call in disjoined_calls(text, _FUNCTION)])
    except NotDisjunction as error:
        raise InvalidShardSelector(str(error)) from None


def _read(call: list[CallArgument]) -> tuple[ShardField, HashRange]:
    if len(call) != 3:
        raise InvalidShardSelector(f"{_FUNCTION}() requires exactly 3 arguments, got {len(call)}")
    path, start, end = call
    if path.path is None:
        words = f"expected field path (e.g. object.metadata.uid), got expression kind {path.path_kind}"
        raise InvalidShardSelector(f"{_FUNCTION}() first argument: {words}")
    return read_shard_field(path.path), HashRange(_bound("hexStart", start), _bound("hexEnd", end))


def _bound(name: str, argument: CallArgument) -> int:
    if not argument.literal_type:
        words = f"must be a string literal (e.g. '0xff'), got expression kind {argument.kind}"
        raise InvalidShardSelector(f"{name} {words}")
    if argument.text is None:
        raise InvalidShardSelector(f"{name} must be a string literal, got {argument.literal_type}")
    return read_shard_bound(name, argument.text)
