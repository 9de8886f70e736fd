"""Impersonation: requests in the name of another user.

Guarantees
- The sender needs permission for every part of the other identity (user, groups, extra values, uid) before anything
  happens in that name. From then on only the other identity counts.
- Parts without a user are rejected, with kube-apiserver's message.
- A name that only looks like that of a service account or a node is the name of an ordinary user.
- The first value of a repeated header counts, even if it is empty, as in kube-apiserver.
"""

from __future__ import annotations

import json
from urllib.parse import unquote

import msgspec

from steersman.apiserver.chain.authentication import ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED
from steersman.apiserver.chain.authorization import NO_SNIFFING, refused
from steersman.apiserver.errors import RequestRejected, bad_request, unauthorized
from steersman.apiserver.identity import UNKNOWN, Access, Authorizer, User
from steersman.apiserver.request import NextHandler, ServerRequest, access_of
from steersman.schemas.names import dns_label, dns_subdomain
from steersman.transport import ServerResponse

_USER, _GROUP, _UID, _EXTRA = "impersonate-user", "impersonate-group", "impersonate-uid", "impersonate-extra-"
_AUTHENTICATION = "authentication.k8s.io"
_ACCOUNT, _NODE = "system:serviceaccount:", "system:node:"
_REMEMBERED_MAX = 1024


class ImpersonationHandler:
    """A handler of the chain that lets a sender act as another user, if an authorizer allows it."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer
        #: Senders that were allowed to impersonate before: a later rejection names the missing part.
        self._known: dict[str, None] = {}

    async def __call__(self, request: ServerRequest, next_: NextHandler) -> ServerResponse:
        """Pass a request on, in the other name if it asks for one."""
        wanted = _wanted(request)
        if wanted is None:
            return await next_(request)
        sender = request.user
        if sender is UNKNOWN:
            raise unauthorized()
        for access in _parts(sender, wanted):
            decision = await self._authorizer(access)
            if not decision.allowed:
                raise self._refused(request, wanted, access, decision.reason)
        if len(self._known) >= _REMEMBERED_MAX:
            self._known.clear()
        self._known[sender.name] = None
        request.user = completed(wanted)
        return await next_(request)

    def _refused(self, request: ServerRequest, wanted: User, access: Access, reason: str) -> RequestRejected:
        sender = request.user
        if sender.name in self._known:
            return refused(access, reason)
        # kube-apiserver first checks the newer, narrower permission on the request itself, and reports that one.
        asked = access_of(sender, request.info)
        mode = "user-info"
        if _account(wanted.name) is not None:
            mode = "serviceaccount"
        elif wanted.name.startswith(_NODE) and not dns_subdomain(wanted.name.removeprefix(_NODE)):
            mode = "arbitrary-node"
        narrow = msgspec.structs.replace(asked, verb=f"impersonate-on:{mode}:{asked.verb}")
        return refused(narrow, reason)


def _wanted(request: ServerRequest) -> User | None:
    """The identity that the headers name; None if they name none."""
    user: str | None = None
    uid: str | None = None
    groups: list[str] = []
    extra: dict[str, tuple[str, ...]] = {}
    for name, value in request.wire.headers:
        header = name.lower()
        if not header.startswith("impersonate-"):
            continue
        if header == _USER:
            user = value if user is None else user
        elif header == _UID:
            uid = value if uid is None else uid
        elif header == _GROUP:
            groups.append(value)
        elif header.startswith(_EXTRA):
            key = unquote(header[len(_EXTRA) :])
            extra[key] = (*extra.get(key, ()), value)
    if not (user or uid or groups or extra):
        return None
    if not user:
        words = f"requested {_go_words(uid or '', groups, extra)} without impersonating a user name"
        raise bad_request(words).with_headers(*NO_SNIFFING)
    return User(name=user, uid=uid or "", groups=tuple(groups), extra=extra)


def _go_words(uid: str, groups: list[str], extra: dict[str, tuple[str, ...]]) -> str:
    """A user as Go prints it."""
    of_groups = f"[]string{{{_quoted(groups)}}}" if groups else "[]string(nil)"
    of_extra = "map[string][]string(nil)"
    if extra:
        pairs = ", ".join(f"{json.dumps(key)}:[]string{{{_quoted(values)}}}" for key, values in sorted(extra.items()))
        of_extra = f"map[string][]string{{{pairs}}}"
    return f'&user.DefaultInfo{{Name:"", UID:{json.dumps(uid)}, Groups:{of_groups}, Extra:{of_extra}}}'


def _quoted(values: list[str] | tuple[str, ...]) -> str:
    return ", ".join(json.dumps(value, ensure_ascii=False) for value in values)


def _account(name: str) -> tuple[str, str] | None:
    """Namespace and name of a user that is a service account; None for others."""
    parts = name.removeprefix(_ACCOUNT).split(":")
    if not name.startswith(_ACCOUNT) or len(parts) != 2 or dns_label(parts[0]) or dns_subdomain(parts[1]):
        return None
    return parts[0], parts[1]


def _parts(sender: User, wanted: User) -> list[Access]:
    """The accesses that the sender needs to impersonate the other identity."""
    account = _account(wanted.name)
    if account is not None:
        first = Access(
            user=sender, verb="impersonate", resource="serviceaccounts", namespace=account[0], name=account[1]
        )
    else:
        first = Access(user=sender, verb="impersonate", resource="users", name=wanted.name)
    parts = [first]
    parts += [Access(user=sender, verb="impersonate", resource="groups", name=group) for group in wanted.groups]
    parts += [
        Access(
            user=sender, verb="impersonate", group=_AUTHENTICATION, resource="userextras", subresource=key, name=value
        )
        for key, values in wanted.extra.items()
        for value in values
    ]
    if wanted.uid:
        parts.append(Access(user=sender, verb="impersonate", group=_AUTHENTICATION, resource="uids", name=wanted.uid))
    return parts


def completed(wanted: User) -> User:
    """An identity with the groups that every user of its sort has."""
    groups = wanted.groups
    account = _account(wanted.name)
    if not groups and account is not None:
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{account[0]}")
    if wanted.name == ANONYMOUS.name:
        # An anonymous user never loses its group: rules for it also bind those who act in its name.
        sort, others = UNAUTHENTICATED, (UNAUTHENTICATED,)
    else:
        sort, others = AUTHENTICATED, (AUTHENTICATED, UNAUTHENTICATED)
    if not any(group in groups for group in others):
        groups = (*groups, sort)
    return User(name=wanted.name, uid=wanted.uid, groups=groups, extra=wanted.extra)
