"""Negotiation of the form of an answer."""

from __future__ import annotations

from steersman.apiserver.errors import bad_request, no_media_type, not_acceptable
from steersman.apiserver.forms.form import BetaForm, Form, WholeForm
from steersman.apiserver.forms.partial_metadata import PartialForm
from steersman.apiserver.forms.table import TableForm
from steersman.apiserver.registry.definition import Definition
from steersman.apiserver.request import ServerRequest
from steersman.objects.field_problems import problem
from steersman.wire import JSON, PROTOBUF, YAML, first_values, parse_accept

#: As kube-apiserver lists them. This server prints the first two.
OFFERS = (JSON, YAML, PROTOBUF)
_STREAMS = (f"{JSON};stream=watch", f"{PROTOBUF};stream=watch")
_VERSIONS = frozenset({("meta.k8s.io", "v1"), ("meta.k8s.io", "v1beta1")})
_FORMS = frozenset({"Table", "PartialObjectMetadata", "PartialObjectMetadataList"})
_PLAIN = frozenset({None, "", "*/*", JSON})
_TAKEN = frozenset({JSON, "*/*"})
_TAKEN_AS_YAML = _TAKEN | {YAML}


def form_for(definition: Definition, request: ServerRequest, *, tables: bool = True) -> Form:
    """The form that a request accepts; 406 if there is none. ``tables`` says whether tables are available."""
    accept = request.wire.header("Accept")
    if accept in _PLAIN:
        return WholeForm(definition)
    known = False
    # Watch events are never YAML: nothing would mark the end of one.
    taken = _TAKEN if request.info.verb == "watch" else _TAKEN_AS_YAML
    for clause in parse_accept(accept):
        if clause.name not in taken:
            known = known or clause.name in OFFERS
            continue
        known = True
        kind, group, version = clause.representation
        if not kind:
            request.wants_yaml = clause.name == YAML
            return WholeForm(definition)
        if kind in _FORMS and (group, version) in _VERSIONS and (tables or kind != "Table"):
            form = _form(definition, kind, request)
            request.wants_yaml = clause.name == YAML
            return form if version == "v1" else BetaForm(form)
    if known:
        raise not_acceptable(OFFERS)
    raise no_media_type((*OFFERS, *_STREAMS) if request.info.verb == "watch" else OFFERS)


def _form(definition: Definition, kind: str, request: ServerRequest) -> Form:
    if kind != "Table":
        return PartialForm(definition, lists=kind == "PartialObjectMetadataList")
    include = first_values(request.wire.query).get("includeObject") or "Metadata"
    if include not in {"Metadata", "Object", "None"}:
        wrong = problem("includeObject", "FieldValueInvalid", include, "must be 'Metadata', 'Object', 'None', or empty")
        raise bad_request(f"Unable to convert to Table as requested: {wrong}")
    return TableForm(definition, include=include)
