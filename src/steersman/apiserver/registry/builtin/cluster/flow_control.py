"""FlowSchemas and PriorityLevelConfigurations: how requests are classified and prioritized."""

from __future__ import annotations

import re
from math import ceil, log2

from steersman.apiserver.registry.builtin.strategy import BuiltinStrategy
from steersman.apiserver.registry.builtin.types.internal_form import printed
from steersman.apiserver.registry.builtin.types.trees import Tree, inner, items, metadata, subtree
from steersman.apiserver.registry.strategy import WHOLE
from steersman.objects.field_problems import (
    FieldProblem,
    duplicate,
    each,
    forbidden,
    invalid,
    required,
    unsupported,
    until_enough,
)
from steersman.schemas.names import dns_label, dns_subdomain

_METHODS = ("ByNamespace", "ByUser")
_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch")
#: The required field of a subject, by its kind.
_SUBJECTS = {"ServiceAccount": "serviceAccount", "User": "user", "Group": "group"}
_EXEMPT = "exempt"
_PRECEDENCE_MAX = 10000
_QUEUES_MAX, _HASH_BITS = 10_000_000, 60
_ZERO_SHARES = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares"
_NAMESPACES = "each member of this list must be '*' or a DNS-1123 label; "


class _FlowControlStrategy(BuiltinStrategy):
    """The common behavior of both kinds: a status with conditions, whose update restores the metadata."""

    judges_changes = False
    judges_metadata_of_status = False
    status_keeps_metadata = True

    def validate_update(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        del old
        return [WHOLE, *self.validate_create(obj)]

    def validate_status(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        del old
        return _conditions(obj)


def _conditions(obj: Tree) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    seen: set[str] = set()
    for index, one in until_enough(items(subtree(obj, "status"), "conditions"), problems):
        path, type_ = f"status.conditions[{index}].type", one.get("type", "")
        problems += [duplicate(path, type_)] if type_ in seen else []
        problems += [] if type_ else [required(path)]
        seen.add(type_)
    return problems


class FlowSchemaStrategy(_FlowControlStrategy):
    """How FlowSchemas behave."""

    def fill(self, obj: Tree) -> None:
        spec: Tree = obj["spec"]
        spec["matchingPrecedence"] = spec.get("matchingPrecedence") or 1000

    def validate_create(self, obj: Tree) -> list[FieldProblem]:
        spec, name = subtree(obj, "spec"), metadata(obj).get("name", "")
        problems = _precedence("spec.matchingPrecedence", spec.get("matchingPrecedence", 0), name)
        method = spec.get("distinguisherMethod")
        if method is not None and method.get("type") not in _METHODS:
            shown = printed(method, "flowcontrol.FlowDistinguisherMethod")
            problems.append(unsupported("spec.distinguisherMethod.type", shown, _METHODS))
        level, path = inner(spec, "priorityLevelConfiguration").get("name", ""), "spec.priorityLevelConfiguration.name"
        missing = [required(path, "must reference a priority level")]
        problems += each(path, level, dns_subdomain(level)) if level else missing
        for index, rule in until_enough(items(spec, "rules"), problems):
            problems += _rule(f"spec.rules[{index}]", rule)
        return problems + _conditions(obj)


def _precedence(path: str, value: int, name: str) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    if value <= 0:
        problems.append(invalid(path, value, "must be a positive value"))
    if value > _PRECEDENCE_MAX:
        problems.append(invalid(path, value, f"must not be greater than {_PRECEDENCE_MAX}"))
    if value == 1 and name != _EXEMPT:
        problems.append(invalid(path, value, "only the schema named 'exempt' may have matchingPrecedence 1"))
    return problems


def _rule(path: str, rule: Tree) -> list[FieldProblem]:
    subjects, resources, others = (items(rule, name) for name in ("subjects", "resourceRules", "nonResourceRules"))
    problems = [] if subjects else [required(f"{path}.subjects", "subjects must contain at least one value")]
    for index, subject in until_enough(subjects, problems):
        problems += _subject(f"{path}.subjects[{index}]", subject)
    if not resources and not others:
        detail = "at least one of resourceRules and nonResourceRules has to be non-empty"
        problems.append(required(path, detail))
    for index, one in until_enough(resources, problems):
        problems += _resource_rule(f"{path}.resourceRules[{index}]", one)
    for index, one in until_enough(others, problems):
        problems += _other_rule(f"{path}.nonResourceRules[{index}]", one)
    return problems


def _subject(path: str, subject: Tree) -> list[FieldProblem]:
    kind: str = subject.get("kind", "")
    field = _SUBJECTS.get(kind)
    if field is None:
        return [unsupported(f"{path}.kind", kind, sorted(_SUBJECTS))]
    problems: list[FieldProblem] = []
    where, given = f"{path}.{field}", subject.get(field)
    if given is None:
        problems.append(required(where, f"{field} is required when subject kind is '{kind}'"))
    else:
        name, namespace = given.get("name", ""), given.get("namespace", "")
        problems += [] if name else [required(f"{where}.name")]
        if kind == "ServiceAccount":
            problems += each(f"{where}.name", name, dns_subdomain(name)) if name not in {"", "*"} else []
            missing = [required(f"{where}.namespace", "must specify namespace for service account")]
            problems += each(f"{where}.namespace", namespace, dns_label(namespace)) if namespace else missing
    order = ("user", "group") if kind == "ServiceAccount" else ("serviceAccount", "group", "user")
    names = {name: of for of, name in _SUBJECTS.items()}
    return problems + [
        forbidden(f"{path}.{name}", f"{name} is forbidden when subject kind is not '{names[name]}'")
        for name in order
        if name != field and subject.get(name) is not None
    ]


def _verbs(path: str, verbs: list[str]) -> list[FieldProblem]:
    if not verbs:
        return [required(path, "verbs must contain at least one value")]
    if "*" in verbs:
        detail = "if '*' is present, must not specify other verbs"
        return [invalid(path, verbs, detail)] if len(verbs) > 1 else []
    return [] if set(verbs) <= set(_VERBS) else [unsupported(path, verbs, _VERBS)]


def _some(path: str, given: list[str], noun: str, plural: str) -> list[FieldProblem]:
    if not given:
        return [required(path, f"resource rules must supply at least one {noun}")]
    detail = f"if '*' is present, must not specify other {plural}"
    return [invalid(path, given, detail)] if len(given) > 1 and "*" in given else []


def _resource_rule(path: str, rule: Tree) -> list[FieldProblem]:
    problems = _verbs(f"{path}.verbs", items(rule, "verbs"))
    problems += _some(f"{path}.apiGroups", items(rule, "apiGroups"), "api group", "api groups")
    problems += _some(f"{path}.resources", items(rule, "resources"), "resource", "resources")
    where, namespaces = f"{path}.namespaces", items(rule, "namespaces")
    if not namespaces and not rule.get("clusterScope"):
        detail = "resource rules that are not cluster scoped must supply at least one namespace"
        problems.append(required(where, detail))
    elif "*" in namespaces:
        detail = "if '*' is present, must not specify other namespaces"
        problems += [invalid(where, namespaces, detail)] if len(namespaces) > 1 else []
    else:
        for index, name in until_enough(namespaces, problems):
            problems += each(f"{where}[{index}]", name, [f"{_NAMESPACES}{said}" for said in dns_label(name)])
    return problems


def _other_rule(path: str, rule: Tree) -> list[FieldProblem]:
    problems = _verbs(f"{path}.verbs", items(rule, "verbs"))
    where, urls = f"{path}.nonResourceURLs", items(rule, "nonResourceURLs")
    if not urls:
        problems.append(required(where, "nonResourceURLs must contain at least one value"))
    elif "*" in urls:
        detail = "if '*' is present, must not specify other non-resource URLs"
        problems += [invalid(where, urls, detail)] if len(urls) > 1 else []
    else:
        for index, url in until_enough(urls, problems):
            problems += each(f"{where}[{index}]", url, _url(url)[:1])
    return problems


def _url(url: str) -> list[str]:
    if url == "/":
        return []
    said = [] if url else ["must not be empty"]
    said += [] if url.startswith("/") else ["must start with slash"]
    said += ["must not contain white-space"] if " " in url else []
    said += ["must not contain double slash"] if "//" in url else []
    count = url.count("*")
    return said + (["wildcard can only do suffix matching"] if count > 1 or (count and url[-2:] != "/*") else [])


class PriorityLevelConfigurationStrategy(_FlowControlStrategy):
    """How PriorityLevelConfigurations behave."""

    declared_fields = re.compile(r"spec\.(exempt|limited(\.limitResponse\.queuing)?)")

    def fill(self, obj: Tree) -> None:
        spec: Tree = obj["spec"]
        for name, shares in (("exempt", 0), ("limited", 30)):
            if spec.get(name) is not None:
                level: Tree = spec[name]
                for field, value in (("nominalConcurrencyShares", shares), ("lendablePercent", 0)):
                    level[field] = value if level.get(field) is None else level[field]
        queuing: Tree | None = subtree(spec, "limited", "limitResponse").get("queuing")
        if queuing is not None:
            for name, value in (("handSize", 8), ("queues", 64), ("queueLengthLimit", 50)):
                queuing[name] = queuing.get(name) or value

    def validate_create(self, obj: Tree) -> list[FieldProblem]:
        spec, name = subtree(obj, "spec"), metadata(obj).get("name", "")
        problems: list[FieldProblem] = []
        if _ZERO_SHARES in inner(metadata(obj), "annotations"):
            problems.append(forbidden("metadata.annotations", f"annotation '{_ZERO_SHARES}' is forbidden"))
        type_, exempt, limited = spec.get("type", ""), spec.get("exempt"), spec.get("limited")
        if (name == _EXEMPT) != (type_ == "Exempt"):
            problems.append(invalid("spec.type", type_, "must be 'Exempt' if and only if `name` is 'exempt'"))
        if type_ == "Exempt":
            problems += [] if limited is None else [forbidden("spec.limited", "must be nil if the type is not Limited")]
            problems += [] if exempt is None else _shares("spec.exempt", exempt)
        elif type_ == "Limited":
            problems += [] if exempt is None else [forbidden("spec.exempt", "must be nil if the type is Limited")]
            missing = [required("spec.limited", "must not be empty when type is Limited")]
            problems += missing if limited is None else _limited("spec.limited", limited)
        else:
            problems.append(unsupported("spec.type", type_, ("Exempt", "Limited")) if type_ else required("spec.type"))
        return problems + _conditions(obj)


def _shares(path: str, level: Tree, between: list[FieldProblem] | None = None) -> list[FieldProblem]:
    shares, lendable = level.get("nominalConcurrencyShares", 0), level.get("lendablePercent")
    where = f"{path}.nominalConcurrencyShares"
    problems = [invalid(where, shares, "must be a non-negative integer")] if shares < 0 else []
    problems += between or []
    if lendable is not None and not 0 <= lendable <= 100:
        problems.append(invalid(f"{path}.lendablePercent", lendable, "must be between 0 and 100, inclusive"))
    return problems


def _limited(path: str, level: Tree) -> list[FieldProblem]:
    problems = _shares(path, level, _response(f"{path}.limitResponse", inner(level, "limitResponse")))
    borrowing = level.get("borrowingLimitPercent")
    if borrowing is not None and borrowing < 0:
        detail = "if specified, must be a non-negative integer"
        problems.append(invalid(f"{path}.borrowingLimitPercent", borrowing, detail))
    return problems


def _response(path: str, response: Tree) -> list[FieldProblem]:
    type_, queuing = response.get("type", ""), response.get("queuing")
    where = f"{path}.queuing"
    if type_ == "Reject":
        detail = "must be nil if limited.limitResponse.type is not Limited"
        return [] if queuing is None else [forbidden(where, detail)]
    if type_ != "Queue":
        return [unsupported(f"{path}.type", type_, ("Queue", "Reject")) if type_ else required(f"{path}.type")]
    if queuing is None:
        return [required(where, "must not be empty if limited.limitResponse.type is Limited")]
    return _queuing(where, queuing)


def _queuing(path: str, queuing: Tree) -> list[FieldProblem]:
    length, queues, hand = (queuing.get(name, 0) for name in ("queueLengthLimit", "queues", "handSize"))
    problems = [invalid(f"{path}.queueLengthLimit", length, "must be positive")] if length <= 0 else []
    if queues <= 0:
        problems.append(invalid(f"{path}.queues", queues, "must be positive"))
    elif queues > _QUEUES_MAX:
        problems.append(invalid(f"{path}.queues", queues, f"must not be greater than {_QUEUES_MAX}"))
    where = f"{path}.handSize"
    if hand <= 0:
        problems.append(invalid(where, hand, "must be positive"))
    elif hand > queues:
        problems.append(invalid(where, hand, f"should not be greater than queues ({queues})"))
    elif ceil(log2(queues) * hand) > _HASH_BITS:
        bits = f"required entropy bits of deckSize {queues} and handSize {hand}"
        problems.append(invalid(where, hand, f"{bits} should not be greater than {_HASH_BITS}"))
    return problems
