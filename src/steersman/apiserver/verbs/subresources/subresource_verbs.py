"""The functions that answer subresources with their own kinds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from steersman.apiserver.context import Verb
from steersman.apiserver.registry.subresources import CONNECTIONS, POD, SERVICE_ACCOUNT
from steersman.apiserver.verbs.subresources.binding import create_binding
from steersman.apiserver.verbs.subresources.connection import connect
from steersman.apiserver.verbs.subresources.eviction import evict
from steersman.apiserver.verbs.subresources.token_request import request_token
from steersman.objects import GroupVersionKind

#: By the kind of the object and the name of the subresource, as `registry.subresources` lists them.
SUBRESOURCE_VERBS: Final[Mapping[tuple[GroupVersionKind, str], Verb]] = {
    **{(POD, name): connect for name in CONNECTIONS[POD]},
    (POD, "binding"): create_binding,
    (POD, "eviction"): evict,
    (SERVICE_ACCOUNT, "token"): request_token,
}
