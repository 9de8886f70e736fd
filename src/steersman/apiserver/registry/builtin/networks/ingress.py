"""Ingresses and IngressClasses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from steersman.apiserver.registry.builtin.strategy import BuiltinStrategy
from steersman.apiserver.registry.builtin.types.formats import (
    address_warnings,
    http_path,
    ip_address,
    ip_family,
    port_name,
    port_number,
)
from steersman.apiserver.registry.builtin.types.references import local_reference
from steersman.apiserver.registry.builtin.types.trees import Tree, inner, items, metadata, subtree
from steersman.apiserver.registry.strategy import CHANGED, WHOLE
from steersman.objects.field_problems import (
    FieldProblem,
    each,
    forbidden,
    invalid,
    required,
    too_long,
    unchanged,
    unsupported,
    until_enough,
)
from steersman.schemas.names import dns_label, dns_subdomain, wildcard_subdomain

_CLASS_ANNOTATION = "kubernetes.io/ingress.class"
_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
_SCOPES = ("Cluster", "Namespace")
_SEQUENCES = ("//", "/./", "/../", "%2f", "%2F")
_SUFFIXES = ("/..", "/.")
_CONTROLLER_MAX = 250
_NOT_AN_ADDRESS = "must be a DNS name, not an IP address"


class _Tolerated(NamedTuple):
    """Problems that an update may keep, because the stored Ingress has them."""

    secret_names: bool = False
    wildcard_rules: bool = False


class IngressStrategy(BuiltinStrategy):
    """How Ingresses behave."""

    def default(self, obj: Tree) -> None:
        """Normalize the Ingress to the form of its type. Keep empty rules, because error messages quote them."""
        is_empty = subtree(obj, "spec").get("rules") == []
        super().default(obj)
        if is_empty and "defaultBackend" not in obj["spec"]:
            obj["spec"]["rules"] = []

    def validate_create(self, obj: Tree) -> list[FieldProblem]:
        problems = _ingress(obj, _Tolerated())
        annotation = inner(metadata(obj), "annotations").get(_CLASS_ANNOTATION)
        name = subtree(obj, "spec").get("ingressClassName")
        if annotation is not None and name is not None and annotation != name:
            detail = "must match `ingressClassName` when both are specified"
            problems.append(invalid(f"annotations.{_CLASS_ANNOTATION}", annotation, detail))
        return problems

    def validate_update(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        """Accept invalid secret names and wildcard rules if the stored object has such problems."""
        spec = subtree(old, "spec")
        tolerated = _Tolerated(
            any(_secret_name(one) for one in items(spec, "tls")),
            any("*" in one.get("host", "") and _rule("", one) for one in items(spec, "rules")),
        )
        return [CHANGED, WHOLE, *_ingress(obj, tolerated)]

    def validate_status(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        known = {one.get("ip") for one in items(subtree(old, "status", "loadBalancer"), "ingress")}
        problems: list[FieldProblem] = []
        for index, one in until_enough(items(subtree(obj, "status", "loadBalancer"), "ingress"), problems):
            path = f"status.loadBalancer.ingress[{index}]"
            address, host = one.get("ip", ""), one.get("hostname", "")
            if address and address not in known:
                problems += each(f"{path}.ip", address, ip_address(address))
            if host:
                problems += each(f"{path}.hostname", host, dns_subdomain(host))
                problems += [invalid(f"{path}.hostname", host, _NOT_AN_ADDRESS)] if ip_family(host) else []
        return problems

    def status_warnings(self, obj: Tree) -> list[str]:
        given = enumerate(items(subtree(obj, "status", "loadBalancer"), "ingress"))
        return [
            text
            for index, one in given
            if one.get("ip")
            for text in address_warnings(f"status.loadBalancer.ingress[{index}]", one["ip"])
        ]

    def warnings(self, obj: Tree, old: Tree | None) -> list[str]:
        """Warnings about the deprecated annotation."""
        is_annotated = old is None and _CLASS_ANNOTATION in inner(metadata(obj), "annotations")
        if not is_annotated or subtree(obj, "spec").get("ingressClassName") is not None:
            return []
        return [f"annotation \"{_CLASS_ANNOTATION}\" is deprecated, please use 'spec.ingressClassName' instead"]


def _ingress(obj: Tree, tolerated: _Tolerated) -> list[FieldProblem]:
    spec = subtree(obj, "spec")
    rules, backend = items(spec, "rules"), spec.get("defaultBackend")
    problems: list[FieldProblem] = []
    if not rules and backend is None:
        detail = "either `defaultBackend` or `rules` must be specified"
        problems.append(invalid("spec", spec.get("rules"), detail))
    if backend is not None:
        problems += _backend("spec.defaultBackend", backend)
    for index, rule in until_enough(rules, problems):
        path, host = f"spec.rules[{index}]", rule.get("host", "")
        if host:
            problems += [invalid(f"{path}.host", host, _NOT_AN_ADDRESS)] if ip_family(host) else []
            problems += each(f"{path}.host", host, _host(host))
        if "*" not in host or not tolerated.wildcard_rules:
            problems += _rule(path, rule)
    for index, tls in until_enough(items(spec, "tls"), problems):
        path = f"spec.tls[{index}]"
        for at, host in until_enough(items(tls, "hosts"), problems):
            problems += each(f"{path}.hosts[{at}]", host, _host(host))
        if not tolerated.secret_names:
            problems += each(f"{path}.secretName", tls.get("secretName"), _secret_name(tls))
    class_name = spec.get("ingressClassName")
    return problems + (
        [] if class_name is None else each("spec.ingressClassName", class_name, dns_subdomain(class_name))
    )


def _host(host: str) -> list[str]:
    return wildcard_subdomain(host) if "*" in host else dns_subdomain(host)


def _secret_name(tls: Tree) -> list[str]:
    name = tls.get("secretName", "")
    return dns_subdomain(name) if name else []


def _rule(path: str, rule: Tree) -> list[FieldProblem]:
    http = rule.get("http")
    if http is None:
        return []
    paths = items(http, "paths")
    problems = [] if paths else [required(f"{path}.http.paths")]
    for index, one in until_enough(paths, problems):
        problems += _path(f"{path}.http.paths[{index}]", one)
    return problems


def _path(path: str, one: Tree) -> list[FieldProblem]:
    type_, url = one.get("pathType"), one.get("path", "")
    problems: list[FieldProblem] = []
    if type_ is None:
        return [required(f"{path}.pathType", "pathType must be specified")]
    if type_ in {"Exact", "Prefix"}:
        problems += each(f"{path}.path", url, _strict_path(url))
    elif type_ != "ImplementationSpecific":
        problems.append(unsupported(f"{path}.pathType", type_, _PATH_TYPES))
    elif url and not url.startswith("/"):
        problems.append(invalid(f"{path}.path", url, "must be an absolute path"))
    return problems + _backend(f"{path}.backend", inner(one, "backend"))


def _strict_path(url: str) -> Iterator[str]:
    if not url.startswith("/"):
        yield "must be an absolute path"
    yield from (f"must not contain '{sequence}'" for sequence in _SEQUENCES if sequence in url)
    yield from (f"cannot end with '{suffix}'" for suffix in _SUFFIXES if url.endswith(suffix))


def _backend(path: str, backend: Tree) -> list[FieldProblem]:
    service, resource = backend.get("service"), backend.get("resource")
    if service is not None and resource is not None:
        return [invalid(path, "", "cannot set both resource and service backends")]
    if resource is not None:
        return local_reference(f"{path}.resource", resource)
    if service is None:
        return [invalid(path, "", "resource or service backend is required")]
    name: str = service.get("name", "")
    problems = each(f"{path}.service.name", name, dns_label(name)) if name else [required(f"{path}.service.name")]
    port = inner(service, "port")
    if port.get("name") and port.get("number"):
        problems.append(invalid(path, "", "cannot set both port name & port number"))
    elif port.get("name"):
        problems += each(f"{path}.service.port.name", port["name"], port_name(port["name"]))
    elif port.get("number"):
        problems += each(f"{path}.service.port.number", port["number"], port_number(port["number"]))
    else:
        problems.append(required(path, "port name or number is required"))
    return problems


class IngressClassStrategy(BuiltinStrategy):
    """How IngressClasses behave."""

    declared_fields = re.compile(r"spec\.parameters\.(kind|name)")

    def fill(self, obj: Tree) -> None:
        if "parameters" in obj["spec"]:
            parameters: Tree = obj["spec"]["parameters"]
            if parameters.get("scope") is None:
                parameters["scope"] = "Cluster"

    def validate_create(self, obj: Tree) -> list[FieldProblem]:
        spec = subtree(obj, "spec")
        controller: str = spec.get("controller", "")
        problems: list[FieldProblem] = []
        if len(controller.encode()) > _CONTROLLER_MAX:
            problems.append(too_long("spec.controller", _CONTROLLER_MAX))
        problems += _domain_path("spec.controller", controller)
        parameters = spec.get("parameters")
        return problems + ([] if parameters is None else _parameters("spec.parameters", parameters))

    def validate_update(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        """Check that the controller does not change."""
        new, before = (subtree(one, "spec").get("controller", "") for one in (obj, old))
        return [CHANGED, *unchanged("spec.controller", new, before), WHOLE, *self.validate_create(obj)]


def _domain_path(path: str, text: str) -> list[FieldProblem]:
    if not text:
        return [required(path)]
    host, _, rest = text.partition("/")
    if not host or not rest:
        return [invalid(path, text, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    return each(path, host, dns_subdomain(host)) + each(path, rest, http_path(rest))


def _parameters(path: str, parameters: Tree) -> list[FieldProblem]:
    problems = local_reference(path, parameters)
    scope, namespace = parameters.get("scope"), parameters.get("namespace")
    if scope is None:
        return [*problems, required(f"{path}.scope")]
    if scope not in _SCOPES:
        problems.append(unsupported(f"{path}.scope", scope, _SCOPES))
    elif scope == "Cluster":
        if namespace is not None:
            problems.append(forbidden(f"{path}.namespace", "`parameters.scope` is set to 'Cluster'"))
    elif namespace is None:
        problems.append(required(f"{path}.namespace", "`parameters.scope` is set to 'Namespace'"))
    else:
        problems += each(f"{path}.namespace", namespace, dns_label(namespace))
    return problems
