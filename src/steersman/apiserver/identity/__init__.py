"""Identity: users, the tokens of service accounts, the peer of a connection, and the question an authorizer decides."""

from steersman.apiserver.identity.access import (
    Access as Access,
    Authorizer as Authorizer,
    Decision as Decision,
    always_allow as always_allow,
)
from steersman.apiserver.identity.account_tokens import AccountTokens as AccountTokens
from steersman.apiserver.identity.peer import request_peer as request_peer
from steersman.apiserver.identity.user import (
    IN_PROCESS as IN_PROCESS,
    MASTERS as MASTERS,
    UNKNOWN as UNKNOWN,
    User as User,
)
