"""Options of requests, validated with kube-apiserver's messages."""

from __future__ import annotations

from typing import Any, Literal, cast

import msgspec

from steersman.apiserver.decoding.declared_kind import TYPE_META
from steersman.apiserver.errors import RequestRejected, bad_request, invalid, unnamed
from steersman.apiserver.registry.metadata import manager_problems
from steersman.apiserver.request import ServerRequest
from steersman.golang import cannot_unmarshal, json_problem, json_syntax_problem, json_type, parse_int, parse_uint
from steersman.objects import GroupKind
from steersman.objects.field_problems import FieldProblem, problem
from steersman.wire import InvalidOption, first_values

_META = "meta.k8s.io"
_POLICIES = ("Foreground", "Background", "Orphan")
_VALIDATIONS = ("", "Ignore", "Strict", "Warn")

Kind = Literal["CreateOptions", "UpdateOptions", "PatchOptions", "DeleteOptions", "ListOptions"]


def refuse_options(kind: Kind, problems: list[FieldProblem]) -> RequestRejected:
    """The answer to invalid options."""
    return invalid(GroupKind(_META, kind), "", problems)


def not_a_number(option: InvalidOption) -> RequestRejected:
    """The answer to an invalid number."""
    try:
        parse_int(option.value)
    except ValueError as error:
        return bad_request(str(error))
    return bad_request(str(option))


def read_version(text: str) -> int:
    """A resourceVersion as a number; empty is 0. Raises ValueError with Go's message if it is invalid."""
    return parse_uint(text) if text else 0


def wrong_version(text: str, error: ValueError) -> str:
    """The message for an invalid resourceVersion in a query."""
    return str(problem("resourceVersion", "FieldValueInvalid", text, str(error)))


def version_of_get(text: str) -> int:
    """The resourceVersion in the query of a get or a watch."""
    try:
        return read_version(text)
    except ValueError as error:
        raise unnamed(wrong_version(text, error)) from None


class WriteOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a write."""

    dry_run: bool = False
    field_manager: str = ""
    #: "Strict", "Warn" or "Ignore".
    field_validation: str = "Warn"
    force: bool | None = None


_DEFAULTS = WriteOptions()


def write_options(request: ServerRequest, kind: Kind, *, applies: bool = False) -> WriteOptions:
    """The options of a create, an update or a patch."""
    query = request.wire.query
    if not query and not applies:
        return _DEFAULTS
    first = first_values(query)
    force = first.get("force")
    manager, validation = first.get("fieldManager", ""), first.get("fieldValidation", "")
    problems: list[FieldProblem] = []
    if kind == "PatchOptions":
        if applies and not manager:
            problems.append(problem("fieldManager", "FieldValueRequired", "", "is required for apply patch"))
        if not applies and force is not None:
            problems.append(problem("force", "FieldValueForbidden", "", "may not be specified for non-apply patch"))
    dry_run = [value for name, value in query if name == "dryRun"]
    wrong_dry_run = dry_run_problems(dry_run)
    problems += [*manager_problems(manager, "fieldManager"), *wrong_dry_run]
    if validation not in _VALIDATIONS:
        listed = ", ".join(f'"{value}"' for value in _VALIDATIONS)
        problems.append(problem("fieldValidation", "FieldValueNotSupported", validation, f"supported values: {listed}"))
    if problems:
        raise refuse_options(kind, problems)
    return WriteOptions(
        dry_run=bool(dry_run),
        field_manager=manager,
        field_validation=validation or "Warn",
        force=_is_true(force),
    )


def dry_run_problems(values: list[str]) -> list[FieldProblem]:
    """The problems with the values of dryRun."""
    if all(value == "All" for value in values):
        return []
    return [problem("dryRun", "FieldValueNotSupported", values, 'supported values: "All"')]


class Preconditions(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Preconditions of a deletion."""

    uid: str | None = None
    resource_version: str | None = None


class DeleteOptions(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The options of a deletion."""

    kind: str = ""
    api_version: str = ""
    grace_period_seconds: int | None = None
    preconditions: Preconditions | None = None
    orphan_dependents: bool | None = None
    propagation_policy: str | None = None
    dry_run: list[str] | None = None
    #: Deletes an object that cannot be read, and no other.
    ignore_store_read_error_with_cluster_breaking_potential: bool | None = None

    @property
    def is_dry_run(self) -> bool:
        """Whether nothing is stored."""
        return bool(self.dry_run)


#: The option that deletes an object which cannot be read.
UNSAFE = "ignoreStoreReadErrorWithClusterBreakingPotential"
_NO_DELETE_OPTIONS = DeleteOptions()
_decode_delete = msgspec.json.Decoder(DeleteOptions).decode


def delete_options(request: ServerRequest, body: bytes) -> DeleteOptions:
    """The options of a deletion: from its body if it has one, else from its query."""
    if body:
        options = _delete_body(body)
    elif request.wire.query:
        options = _delete_query(request)
    else:
        return _NO_DELETE_OPTIONS
    problems: list[FieldProblem] = []
    policy = options.propagation_policy
    if options.orphan_dependents is not None and policy is not None:
        words = "orphanDependents and deletionPropagation cannot be both set"
        problems.append(problem("propagationPolicy", "FieldValueInvalid", policy, words))
    if policy is not None and policy not in _POLICIES:
        listed = ", ".join(f'"{value}"' for value in (*_POLICIES, "nil"))
        problems.append(problem("propagationPolicy", "FieldValueNotSupported", policy, f"supported values: {listed}"))
    problems += dry_run_problems(options.dry_run or [])
    if options.ignore_store_read_error_with_cluster_breaking_potential:
        problems += [unsafe_problem(f"cannot be set together with .{name}") for name in _beside(options)]
    if problems:
        raise refuse_options("DeleteOptions", problems)
    return options


def _beside(options: DeleteOptions) -> list[str]:
    """The options that an unsafe deletion must not have."""
    given = {
        "propagationPolicy": options.propagation_policy,
        "orphanDependents": options.orphan_dependents,
        "gracePeriodSeconds": options.grace_period_seconds,
        "preconditions": options.preconditions,
    }
    return [name for name, value in given.items() if value is not None]


def unsafe_problem(why: str) -> FieldProblem:
    """A problem with the option for an unsafe deletion."""
    return problem(UNSAFE, "FieldValueInvalid", True, why)


def _delete_body(body: bytes) -> DeleteOptions:
    if body.strip() == b"null":
        return _NO_DELETE_OPTIONS
    # As in Go, invalid UTF-8 is read as replacement characters.
    body = body.decode("utf-8", "replace").encode()
    try:
        options = _decode_delete(body)
    except (msgspec.DecodeError, RecursionError) as error:
        if isinstance(error, msgspec.ValidationError) and json_syntax_problem(body) is None:
            raise bad_request(_wrong_type(body) or f"json: {error}") from None
        raise bad_request(
            f"couldn't get version/kind; json parse error: {json_problem(body, error, 'DeleteOptions')}"
        ) from None
    if options.kind not in {"", "DeleteOptions"}:
        version = options.api_version or f"{_META}/v1"
        raise bad_request(
            f'no kind "{options.kind}" is registered for version "{version}" in scheme "pkg/runtime/scheme.go:111"'
        )
    return options


_GO_TYPES = {
    "gracePeriodSeconds": ("int64", int),
    "orphanDependents": ("bool", bool),
    "propagationPolicy": ("v1.DeletionPropagation", str),
    "preconditions": ("v1.Preconditions", dict),
    "dryRun": ("[]string", list),
    UNSAFE: ("bool", bool),
}


def _wrong_type(body: bytes) -> str | None:
    """Go's message about the first field of DeleteOptions with a wrong type; None if there is none."""
    try:
        tree: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return None
    if not isinstance(tree, dict):
        return f"couldn't get version/kind; json parse error: {cannot_unmarshal(json_type(tree), TYPE_META)}"
    for name, (go_type, type_) in _GO_TYPES.items():
        value: Any = cast("dict[str, Any]", tree).get(name)
        if value is not None and (not isinstance(value, type_) or (type_ is int and isinstance(value, bool))):
            return cannot_unmarshal(json_type(value), go_type, f"DeleteOptions.{name}")
    return None


def _delete_query(request: ServerRequest) -> DeleteOptions:
    first = first_values(request.wire.query)
    grace = first.get("gracePeriodSeconds")
    orphan = first.get("orphanDependents")
    try:
        seconds = None if grace is None else parse_int(grace)
    except ValueError as error:
        raise bad_request(str(error)) from None
    uid, version = first.get("uid") or None, first.get("resourceVersion") or None
    return DeleteOptions(
        grace_period_seconds=seconds,
        preconditions=Preconditions(uid, version) if uid or version else None,
        orphan_dependents=_is_true(orphan),
        propagation_policy=first.get("propagationPolicy"),
        dry_run=[value for name, value in request.wire.query if name == "dryRun"],
        ignore_store_read_error_with_cluster_breaking_potential=_is_true(first.get(UNSAFE)),
    )


def _is_true(value: str | None) -> bool | None:
    """An option in a query, as Go reads a bool."""
    return None if value is None else value != "0" and value.lower() != "false"
