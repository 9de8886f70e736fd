"""Sending one write: the request of a verb, and the stages that send it."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeAlias

from steersman.client.bindings import Binding, VerbCall
from steersman.client.request_sender import RequestSender
from steersman.client.stages.observed_sender import ObservedSender
from steersman.objects import Key
from steersman.wire import JSON, HttpRequest, WriteOptions

#: Methods by verb; all others patch.
_METHODS = {"create": "POST", "update": "PUT"}


#: The stages of sending.
Sender: TypeAlias = RequestSender | ObservedSender


def send_write(
    sender: Sender,
    verb: str,
    binding: Binding[Any],
    key: Key,
    body: bytes,
    options: WriteOptions,
    *,
    subresource: str = "",
    media_type: str = JSON,
) -> Coroutine[Any, Any, Any]:
    """Send a write of one object or subresource and decode the answer.

    Not an async function: its frame would hold the body, perhaps that of a Secret, in the traceback of a failure.
    """
    name = "" if verb == "create" and not subresource else key.name
    request = HttpRequest(
        method=_METHODS.get(verb, "PATCH"),
        path=binding.path(key.namespace, name, subresource),
        query=options.to_query(),
        headers=(("Accept", JSON), ("Content-Type", media_type)),
        body=body,
    )
    tried = VerbCall(verb, binding.gvk, key, subresource)
    return sender.fetch(request, binding.decode, tried=tried, reads=binding.reads)
