"""token: the subresource of a ServiceAccount that creates a token for it.

Guarantees
- A token is created only for an existing service account, and bound only to an existing object that may have it.
- The token is only in the answer; nothing of the request is stored.
"""

from __future__ import annotations

from functools import partial
from typing import Final

import msgspec

from steersman import kinds
from steersman.aio import new_uid, utc_now
from steersman.apiserver.answers import answer
from steersman.apiserver.context import VerbContext
from steersman.apiserver.documents import decode_stored
from steersman.apiserver.errors import Named, bad_request, conflict, internal, invalid, not_found
from steersman.apiserver.field_managers import managed_of, manager_of, updated
from steersman.apiserver.forms import form_for
from steersman.apiserver.identity.account_tokens import AUDIENCE, Claimed, Claims, Subject
from steersman.apiserver.registry.definition import Definition, Tree
from steersman.apiserver.registry.subresources import TOKEN_REQUEST
from steersman.apiserver.request import ServerRequest
from steersman.apiserver.storage import Record
from steersman.apiserver.verbs.subresources.posted_objects import posted_attributes, read_posted
from steersman.objects import format_time
from steersman.objects.field_problems import FieldProblem, each, problem, unsupported
from steersman.schemas.names import dns_subdomain
from steersman.transport import ServerResponse

_DEFINITION: Final = Definition(
    gvk=TOKEN_REQUEST, resource="tokenrequests", schema=partial(kinds.schema_of, TOKEN_REQUEST)
)
_NAMED: Final = Named(TOKEN_REQUEST.group, TOKEN_REQUEST.kind)
_BINDABLE: Final = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}
_LIFE, _SHORTEST, _LONGEST = 3600, 600, 1 << 32
#: Pods request tokens with this lifetime to adopt renewal; a token that is not renewed causes a warning, and is valid
#: for a year.
_LEARNING, _YEAR = 3607, 365 * 24 * 3600
_ATTESTATIONS, _GROUPS = "spec.attestations", "admissionReviewAPIGroups"
_CONFIGURATIONS: Final = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
_ISSUED: Final = "authentication.kubernetes.io/issued-credential-id"


async def request_token(context: VerbContext, request: ServerRequest) -> ServerResponse:
    """Answer a POST of a TokenRequest."""
    form = form_for(_DEFINITION, request, tables=False)
    tree, options = await read_posted(context, request, _DEFINITION)
    tree = _managed(context, request, tree, options.field_manager)
    info, metadata = request.info, tree["metadata"]
    attributes = posted_attributes(context, request, _DEFINITION, tree, name=info.name, dry_run=options.dry_run)
    await context.admission.admit(attributes)
    uid = await _account(context, request, metadata)
    moment = utc_now().replace(microsecond=0)
    metadata |= {"name": info.name, "uid": uid, "creationTimestamp": format_time(moment)}
    spec = tree["spec"] = _completed(tree.get("spec") or {})
    tree["status"] = {"expirationTimestamp": None, "token": ""}
    problems = _problems(spec)
    if problems:
        raise invalid(TOKEN_REQUEST, "", problems)
    await context.admission.validate(attributes)
    bound = await _bound(context, request, spec["boundObjectRef"])
    seconds: int = spec["expirationSeconds"]
    seen = int(moment.timestamp())
    learns = seconds == _LEARNING and "pod" in bound and set(spec["audiences"]) == {AUDIENCE}
    claims = Claims(
        aud=tuple(spec["audiences"]),
        exp=seen + (_YEAR if learns else seconds),
        iat=seen,
        jti=new_uid(),
        subject=Subject(
            namespace=info.namespace,
            serviceaccount=Claimed(info.name, uid),
            warnafter=seen + seconds if learns else None,
            **bound,
        ),
        nbf=seen,
        sub=f"system:serviceaccount:{info.namespace}:{info.name}",
    )
    if request.accounts is None:
        raise internal("this request did not pass the server, which alone creates tokens")
    until = format_time(moment.fromtimestamp(seen + seconds, moment.tzinfo))
    tree["status"] = {"token": await request.accounts.sign(claims), "expirationTimestamp": until}
    request.annotations[_ISSUED] = claims.credential
    return answer(request, form.one(Record("", msgspec.json.encode(tree), 0, 0)), status=201)


def _managed(context: VerbContext, request: ServerRequest, tree: Tree, field_manager: str) -> Tree:
    """The request with its managed fields: for the requested fields, and for the filled-in lifetime."""
    spec: Tree = tree.get("spec") or {}
    tree["spec"] = {"expirationSeconds": _LIFE} | {name: value for name, value in spec.items() if value is not None}
    managed = managed_of(context.registry, _DEFINITION, request.info.subresource)
    return updated(managed, None, tree, manager_of(request, field_manager))


async def _account(context: VerbContext, request: ServerRequest, metadata: Tree) -> str:
    """The uid of the requested service account."""
    name = request.info.name
    given: str = metadata.get("name", "")
    if given and given != name:
        words = "must match the service account name if specified"
        raise invalid(TOKEN_REQUEST, name, [problem("metadata.name", "FieldValueInvalid", given, words)])
    account = await _read(context, request, "serviceaccounts", name)
    uid: str = account["metadata"]["uid"]
    wanted: str = metadata.get("uid", "")
    if wanted and wanted != uid:
        why = f"the UID in the token request ({wanted}) does not match the UID of the service account ({uid})"
        raise conflict(_NAMED, name, why)
    return uid


def _completed(spec: Tree) -> Tree:
    seconds, ref = spec.get("expirationSeconds"), spec.get("boundObjectRef")
    return {
        "audiences": spec.get("audiences") or [AUDIENCE],
        "expirationSeconds": _LIFE if seconds is None else seconds,
        **({"attestations": spec["attestations"]} if spec.get("attestations") else {}),
        "boundObjectRef": None if ref is None else {name: value for name, value in ref.items() if value},
    }


def _problems(spec: Tree) -> list[FieldProblem]:
    attested: Tree = spec.get("attestations") or {}
    if _is_for_webhooks(spec["boundObjectRef"] or {}):
        return _lifetime(spec) + _attestations(attested, spec["audiences"])
    if not attested:
        return _lifetime(spec)
    words = "attestations may only be specified with a webhook bound object reference"
    return [problem(_ATTESTATIONS, "FieldValueInvalid", attested, words)]


def _lifetime(spec: Tree) -> list[FieldProblem]:
    seconds: int = spec["expirationSeconds"]
    if seconds < _SHORTEST:
        words = "may not specify a duration less than 10 minutes"
    elif seconds > _LONGEST:
        words = "may not specify a duration larger than 2^32 seconds"
    else:
        return []
    return [problem("spec.expirationSeconds", "FieldValueInvalid", seconds, words)]


def _is_for_webhooks(ref: Tree) -> bool:
    kind = ref.get("kind", "")
    return kind in _CONFIGURATIONS and ref.get("apiVersion") == "admissionregistration.k8s.io/v1"


def _attestations(attested: Tree, audiences: list[str]) -> list[FieldProblem]:
    """The problems of a token for webhooks, which one audience gets for one group of reviews."""
    problems: list[FieldProblem] = []
    if len(audiences) != 1:
        words = "must be length 1 when bound to a webhook config"
        problems.append(problem("spec.audiences", "FieldValueInvalid", audiences, words))
    if len(attested) != 1:
        words = "webhook bound requests require exactly one admissionReviewAPIGroups attestation"
        return [*problems, problem(_ATTESTATIONS, "FieldValueInvalid", attested or None, words)]
    ((key, values),) = attested.items()
    path = f"{_ATTESTATIONS}[{key}]"
    if key != _GROUPS:
        problems.append(unsupported(path, key, (_GROUPS,)))
    elif len(values or ()) != 1:
        problems.append(problem(path, "FieldValueInvalid", values or None, "must specify a single value"))
    elif not values[0]:
        problems.append(problem(f"{path}[0]", "FieldValueInvalid", "", "may not be an empty string"))
    elif values[0] != "*":
        wrong = (f"must specify a valid API Group: {said}" for said in dns_subdomain(values[0]))
        problems += each(f"{path}[0]", values[0], wrong)
    return problems


async def _bound(context: VerbContext, request: ServerRequest, ref: Tree | None) -> dict[str, Claimed]:
    """The objects that a token is bound to, by claim."""
    if ref is None:
        return {}
    kind, name, account = ref.get("kind", ""), ref.get("name", ""), request.info.name
    group, version = _group_version(ref.get("apiVersion", ""))
    if _is_for_webhooks(ref):
        gate = "(feature gate APIServerWebhookAuthenticationToken is disabled)"
        raise bad_request(f"cannot bind token to object of type {group}/{version}, Kind={kind} {gate}")
    if group or kind not in _BINDABLE:
        raise bad_request(f"cannot bind token to object of type {group}/{version}, Kind={kind}")
    if not name:
        raise bad_request("Name parameter required.")
    target = await _read(context, request, _BINDABLE[kind], name)
    uid, wanted = target["metadata"]["uid"], ref.get("uid", "")
    bound = {kind.lower(): Claimed(name, uid)}
    if kind == "Pod":
        spec: Tree = target["spec"]
        if spec.get("serviceAccountName", "") != account:
            raise bad_request(
                f'cannot bind token for serviceaccount "{account}" to pod running with different serviceaccount name.'
            )
        if node := spec.get("nodeName", ""):
            record = await context.read("", "nodes", "", node)
            bound["node"] = Claimed(node, decode_stored(record)["metadata"]["uid"] if record is not None else "")
    if wanted and wanted != uid:
        why = (
            f"the UID in the bound object reference ({wanted}) does not match the UID in record. The object might have "
            "been deleted and then recreated"
        )
        raise conflict(Named("", kind), name, why)
    return bound


def _group_version(api_version: str) -> tuple[str, str]:
    """Group and version; an invalid text is ignored, as in kube-apiserver."""
    if api_version.count("/") > 1:
        return "", ""
    group, _, version = api_version.rpartition("/")
    return group, version


async def _read(context: VerbContext, request: ServerRequest, resource: str, name: str) -> Tree:
    namespace = "" if resource == "nodes" else request.info.namespace
    record = await context.read("", resource, namespace, name)
    if record is None:
        raise not_found(Named("", resource), name)
    return decode_stored(record)
