"""Identity: users, the tokens of service accounts, the peer of a connection, and the question an authorizer decides."""

from steersman.apiserver.identity.access import Access, Authorizer, Decision, always_allow
from steersman.apiserver.identity.account_tokens import AccountTokens
from steersman.apiserver.identity.peer import request_peer
from steersman.apiserver.identity.user import IN_PROCESS, UNKNOWN, User

__all__ = [
    "IN_PROCESS",
    "UNKNOWN",
    "Access",
    "AccountTokens",
    "Authorizer",
    "Decision",
    "User",
    "always_allow",
    "request_peer",
]
