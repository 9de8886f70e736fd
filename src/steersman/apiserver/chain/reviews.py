"""Reviews: kinds that are questions about users, answered at once and never stored.

Guarantees
- An access review gives the same answer as a request: both use the same authorizer.
- Messages, codes and echoed fields are kube-apiserver's.
"""

from __future__ import annotations

from typing import Any, cast

import msgspec

from steersman.aio import utc_now
from steersman.apiserver.chain.audit import user_tree
from steersman.apiserver.chain.authentication import Authentication
from steersman.apiserver.chain.rbac import Rbac, Rule, listed
from steersman.apiserver.errors import bad_request, invalid
from steersman.apiserver.identity import Access, Authorizer, User
from steersman.apiserver.identity.account_tokens import AUDIENCE, NotAccepted
from steersman.apiserver.registry import Definition, builtin_definitions
from steersman.apiserver.registry.definition import Review, Tree
from steersman.apiserver.request import ServerRequest
from steersman.objects import GroupKind, GroupVersion, format_time
from steersman.objects.field_problems import FieldProblem, problem

_AUTHORIZATION, _AUTHENTICATION = (
    GroupVersion("authorization.k8s.io", "v1"),
    GroupVersion("authentication.k8s.io", "v1"),
)
_INVALID_BEARER = "invalid bearer token"


class Reviews:
    """Answers reviews: ``ApiServer(definitions=Reviews(authorizer, authentication).definitions())``."""

    def __init__(self, authorizer: Authorizer, authentication: Authentication | None = None) -> None:
        self._authorizer = authorizer
        self._authentication = authentication or Authentication()

    def definitions(self) -> list[Definition]:
        """The definitions of the review kinds, with their handlers."""
        answerers: dict[str, Review] = {
            "SelfSubjectAccessReview": self._self_access,
            "SubjectAccessReview": self._access,
            "LocalSubjectAccessReview": self._local_access,
            "SelfSubjectRulesReview": self._rules,
            "SelfSubjectReview": self._self,
            "TokenReview": self._token,
        }
        return [
            msgspec.structs.replace(definition, review=answerers[definition.gvk.kind])
            for definition in builtin_definitions([_AUTHORIZATION, _AUTHENTICATION])
            if definition.gvk.kind in answerers
        ]

    async def _self_access(self, review: Tree, request: ServerRequest) -> None:
        spec = _spec(review)
        _judge(_attribute_problems(spec) + _selector_problems(spec) or _metadata_problems(review))
        await self._decide(review, spec, request.user)

    async def _access(self, review: Tree, request: ServerRequest) -> None:
        del request
        spec = _spec(review)
        problems = _attribute_problems(spec) + _subject_problems(spec) + _selector_problems(spec)
        _judge(problems + _metadata_problems(review))
        await self._decide(review, spec, _user(spec))

    async def _local_access(self, review: Tree, request: ServerRequest) -> None:
        del request
        spec = _spec(review)
        problems = _attribute_problems(spec) + _subject_problems(spec) + _selector_problems(spec)
        namespace = review["metadata"].get("namespace", "")
        attributes = spec.get("resourceAttributes")
        if attributes is not None and attributes.get("namespace", "") != namespace:
            where = "spec.resourceAttributes.namespace"
            found = attributes.get("namespace", "")
            problems.append(problem(where, "FieldValueInvalid", found, "must match metadata.namespace"))
        if "nonResourceAttributes" in spec:
            path = spec["nonResourceAttributes"]
            problems = [
                problem(
                    "spec.nonResourceAttributes",
                    "FieldValueInvalid",
                    _go_path(path),
                    "disallowed on this kind of request",
                )
            ]
        _judge(problems)
        await self._decide(review, spec, _user(spec))

    async def _decide(self, review: Tree, spec: Tree, user: User) -> None:
        decision = await self._authorizer(_access_of(spec, user))
        status: Tree = {"allowed": decision.allowed}
        if decision.reason:
            status["reason"] = decision.reason
        review["status"] = status

    async def _rules(self, review: Tree, request: ServerRequest) -> None:
        namespace: str = _spec(review).get("namespace", "")
        if not namespace:
            raise bad_request("no namespace on request")
        resources: list[Any] = []
        paths: list[Any] = []
        problems: dict[str, None] = {}
        user = request.user
        if not isinstance(self._authorizer, Rbac):
            every = ("*",)
            resources.append(Rule(verbs=every, api_groups=every, resources=every))
            paths.append(Rule(verbs=every, non_resource_urls=every))
        if isinstance(self._authorizer, Rbac):
            async for grant in self._authorizer.grants(user, namespace):
                if grant.problem:
                    problems[grant.problem] = None
                resources += [rule for rule in grant.rules if rule.resources]
                paths += [rule for rule in grant.rules if rule.non_resource_urls]
        review["metadata"], review["spec"] = {}, {}
        status: Tree = {"resourceRules": resources, "nonResourceRules": paths, "incomplete": False}
        if problems:
            status["evaluationError"] = listed(list(problems))
        review["status"] = status

    async def _self(self, review: Tree, request: ServerRequest) -> None:
        review["metadata"] = {"creationTimestamp": format_time(utc_now())}
        review["status"] = {"userInfo": user_tree(request.user)}

    async def _token(self, review: Tree, request: ServerRequest) -> None:
        spec = _spec(review)
        token: str = spec.get("token", "")
        if not token:
            raise bad_request("token is required for TokenReview in authentication")
        user = self._authentication.user_of_token(token)
        audiences: list[str] = spec.get("audiences") or [AUDIENCE]
        if user is not None and AUDIENCE in audiences:
            review["status"] = {"authenticated": True, "user": user_tree(user), "audiences": [AUDIENCE]}
        else:
            # As in kube-apiserver, what the sender wrote about the user of a rejected token stays.
            sent = cast("Tree", review.get("status") or {})
            kept = {name: sent[name] for name in ("user", "audiences") if sent.get(name)}
            status = await _account_status(request, token, audiences)
            review["status"] = status if status.get("authenticated") else status | kept


async def _account_status(request: ServerRequest, token: str, audiences: list[str]) -> Tree:
    """The review status of a service account token."""
    why: tuple[str, ...] = ()
    if request.accounts is not None:
        try:
            claims, found = await request.accounts.review(token, audiences)
        except NotAccepted as refused:
            why = refused.args
        else:
            return {"authenticated": True, "user": user_tree(claims.user), "audiences": found}
    return {"user": {}, "error": listed([_INVALID_BEARER, *why])}


def _spec(review: Tree) -> Tree:
    return cast("Tree", review.setdefault("spec", {}))


def _user(spec: Tree) -> User:
    extra: dict[str, list[str]] = spec.get("extra") or {}
    return User(
        name=spec.get("user", ""),
        uid=spec.get("uid", ""),
        groups=tuple(spec.get("groups") or ()),
        extra={key.lower(): tuple(values) for key, values in extra.items()},
    )


def _access_of(spec: Tree, user: User) -> Access:
    attributes: Tree | None = spec.get("resourceAttributes")
    if attributes is None:
        path: Tree = spec["nonResourceAttributes"]
        return Access(user=user, verb=path.get("verb", ""), path=path.get("path", ""), is_resource=False)
    names = ("verb", "group", "version", "resource", "subresource", "namespace", "name")
    return Access(user=user, **{name: attributes.get(name, "") for name in names})


def _judge(problems: list[FieldProblem]) -> None:
    if problems:
        raise invalid(GroupKind(_AUTHORIZATION.group, ""), "", problems)


def _go_path(path: Tree) -> Tree:
    return {"Path": path.get("path", ""), "Verb": path.get("verb", "")}


def _attribute_problems(spec: Tree) -> list[FieldProblem]:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if (resource is None) != (path is None):
        return []
    words = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
    return [problem("spec", "FieldValueInvalid", None if path is None else _go_path(path), words)]


def _subject_problems(spec: Tree) -> list[FieldProblem]:
    if spec.get("user") or spec.get("groups"):
        return []
    return [problem("spec.user", "FieldValueInvalid", "", "at least one of user or group must be specified")]


def _selector_problems(spec: Tree) -> list[FieldProblem]:
    attributes: Tree = spec.get("resourceAttributes") or {}
    problems: list[FieldProblem] = []
    for name in ("fieldSelector", "labelSelector"):
        selector: Tree | None = attributes.get(name)
        if selector is None:
            continue
        where, raw, requirements = (
            f"spec.resourceAttributes.{name}",
            selector.get("rawSelector"),
            selector.get("requirements"),
        )
        if raw and requirements:
            words = "may not specified at the same time as requirements"
            problems.append(problem(f"{where}.rawSelector", "FieldValueInvalid", raw, words))
        if not raw and not requirements:
            words = f"when {where} is specified, requirements or rawSelector is required"
            problems.append(problem(f"{where}.requirements", "FieldValueRequired", "", words))
    return problems


def _metadata_problems(review: Tree) -> list[FieldProblem]:
    given = {name: value for name, value in review["metadata"].items() if name != "managedFields"}
    return [problem("metadata", "FieldValueInvalid", given, "must be empty")] if given else []
