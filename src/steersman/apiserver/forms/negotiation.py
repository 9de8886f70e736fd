"""Negotiation of the form of an answer."""

from __future__ import annotations

from steersman.apiserver import protobuf
from steersman.apiserver.errors import bad_request, no_media_type, not_acceptable
from steersman.apiserver.forms.form import BetaForm, Form, WholeForm
from steersman.apiserver.forms.partial_metadata import PartialForm
from steersman.apiserver.forms.table import TableForm
from steersman.apiserver.registry.definition import Definition
from steersman.apiserver.request import ServerRequest
from steersman.objects.field_problems import problem
from steersman.wire import JSON, PROTOBUF, YAML, MediaType, first_values, parse_accept

#: As kube-apiserver lists them.
OFFERS = (JSON, YAML, PROTOBUF)
_STREAMS = (f"{JSON};stream=watch", f"{PROTOBUF};stream=watch")
_VERSIONS = frozenset({("meta.k8s.io", "v1"), ("meta.k8s.io", "v1beta1")})
_FORMS = frozenset({"Table", "PartialObjectMetadata", "PartialObjectMetadataList"})
_PLAIN = frozenset({None, "", "*/*", JSON})
_ANY, _ANY_OF_ITS_TYPE = "*/*", "application/*"
_TAKEN = frozenset({JSON, PROTOBUF, _ANY})
_TAKEN_AS_YAML = _TAKEN | {YAML}


def form_for(definition: Definition, request: ServerRequest, *, tables: bool = True, messages: bool = True) -> Form:
    """The form that a request accepts. Raises 406 if none is available.

    ``tables`` says whether tables are available, and ``messages`` whether built-in kinds have protobuf messages.
    """
    accept = request.wire.header("Accept")
    if accept in _PLAIN:
        return WholeForm(definition)
    known = False
    # Watch events are never YAML: nothing would mark the end of one.
    taken = _TAKEN if request.info.verb == "watch" else _TAKEN_AS_YAML
    # kube-apiserver has another server for custom resources, which understands more, with its own words.
    is_custom = definition.custom or not messages
    if is_custom:
        taken |= {_ANY_OF_ITS_TYPE}
    for clause in parse_accept(accept):
        if clause.name not in taken:
            known = known or clause.name in OFFERS
            continue
        known = True
        form = _form(definition, clause, request, tables=tables, messages=messages)
        if form is not None:
            request.media_type = JSON if clause.name.endswith("/*") else clause.name
            return form
    if known or is_custom:
        raise not_acceptable(OFFERS)
    raise no_media_type((*OFFERS, *_STREAMS) if request.info.verb in {"list", "watch"} else OFFERS)


def _form(
    definition: Definition, clause: MediaType, request: ServerRequest, *, tables: bool, messages: bool
) -> Form | None:
    """The form that one clause of an Accept header asks for; None if it is not available."""
    kind, group, version = clause.representation
    is_protobuf = clause.name == PROTOBUF
    if not kind:
        # Only built-in kinds have protobuf messages.
        messages = messages and not definition.custom
        return (
            WholeForm(definition) if not is_protobuf or (messages and protobuf.has_protobuf(definition.gvk)) else None
        )
    if kind not in _FORMS or (group, version) not in _VERSIONS:
        return None
    if kind != "Table":
        form: Form = PartialForm(definition, lists=kind == "PartialObjectMetadataList")
    elif tables and not is_protobuf:
        form = TableForm(definition, include=_included(request))
    else:
        return None
    return form if version == "v1" else BetaForm(form)


def _included(request: ServerRequest) -> str:
    """How much of an object the rows of a table include."""
    include = first_values(request.wire.query).get("includeObject") or "Metadata"
    if include not in {"Metadata", "Object", "None"}:
        wrong = problem("includeObject", "FieldValueInvalid", include, "must be 'Metadata', 'Object', 'None', or empty")
        raise bad_request(f"Unable to convert to Table as requested: {wrong}")
    return include
