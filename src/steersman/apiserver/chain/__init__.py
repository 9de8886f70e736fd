"""The chain: handlers that process every request before the server routes it.

The order is that of the engine: limits, authentication, audit, impersonation, flow classification, authorization. An
`ApiServer` assembles the chain itself; use `chain` to add your own handlers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from steersman._lazy_names import lazy_names

# Imported on first use: a server without RBAC needs none of its rules.
if TYPE_CHECKING:
    from steersman.apiserver.chain.assembly import access_handlers as access_handlers, chain as chain
    from steersman.apiserver.chain.audit import (
        Audit as Audit,
        AuditFile as AuditFile,
        AuditHook as AuditHook,
        AuthenticationAudit as AuthenticationAudit,
    )
    from steersman.apiserver.chain.authentication import Authentication as Authentication, single_user as single_user
    from steersman.apiserver.chain.authorization import Authorization as Authorization
    from steersman.apiserver.chain.flow_classifier import FlowClassifier as FlowClassifier
    from steersman.apiserver.chain.impersonation import ImpersonationHandler as ImpersonationHandler
    from steersman.apiserver.chain.limits import RequestLimits as RequestLimits
    from steersman.apiserver.chain.rbac import Rbac as Rbac
    from steersman.apiserver.chain.reviews import Reviews as Reviews
    from steersman.apiserver.identity import (
        Access as Access,
        Authorizer as Authorizer,
        Decision as Decision,
        always_allow as always_allow,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "steersman.apiserver.chain.assembly": ["access_handlers", "chain"],
            "steersman.apiserver.chain.audit": ["Audit", "AuditFile", "AuditHook", "AuthenticationAudit"],
            "steersman.apiserver.chain.authentication": ["Authentication", "single_user"],
            "steersman.apiserver.chain.authorization": ["Authorization"],
            "steersman.apiserver.chain.flow_classifier": ["FlowClassifier"],
            "steersman.apiserver.chain.impersonation": ["ImpersonationHandler"],
            "steersman.apiserver.chain.limits": ["RequestLimits"],
            "steersman.apiserver.chain.rbac": ["Rbac"],
            "steersman.apiserver.chain.reviews": ["Reviews"],
            "steersman.apiserver.identity": ["Access", "Authorizer", "Decision", "always_allow"],
        },
    )
