"""The variables of a service: those it declares, its port, the addresses of its dependencies, and the collector.

A declared variable always wins.
"""

from __future__ import annotations

from collections.abc import Iterator

from steersman.application.model import ServiceDefinition
from steersman.application.objects.names import object_name
from steersman.application.objects.ports import ServedPort, declared_ports
from steersman.application.objects.translation_context import TranslationContext
from steersman.workloads.kinds import EnvVar

#: The ports of OpenTelemetry's protocol with their encodings, the preferred one first.
_OTLP_PORTS = {4318: "http/protobuf", 4317: "grpc"}
#: Parts of the names of images that collect telemetry.
_COLLECTOR_IMAGES = (
    "opentelemetry-collector",
    "jaegertracing/",
    "grafana/otel-lgtm",
    "grafana/alloy",
    "aspire-dashboard",
)


def variables(translation: TranslationContext, definition: ServiceDefinition) -> list[EnvVar]:
    """The variables of a service, the declared ones first."""
    found = dict(definition.environment)
    if definition.own_port is not None and definition.scale > 1:
        # Each process gets its own.
        found.pop("PORT", None)
    if definition.is_process:
        for name, value in (*_own_ports(translation, definition), *_addresses(translation, definition)):
            found.setdefault(name, value)
    for name, value in _telemetry(translation, definition):
        found.setdefault(name, value)
    return [EnvVar(name=name, value=value) for name, value in found.items()]


def _own_ports(translation: TranslationContext, definition: ServiceDefinition) -> Iterator[tuple[str, str]]:
    served = translation.ports[definition.name]
    if served:
        yield "PORT", served[0].own_port
    elif ports := declared_ports(definition):
        yield "PORT", str(ports[0].target)
    for each in served:
        if each.port.name:
            yield f"PORT_{_variable(each.port.name)}", each.own_port


def _addresses(translation: TranslationContext, definition: ServiceDefinition) -> Iterator[tuple[str, str]]:
    """The addresses of direct dependencies, under Kubernetes' names."""
    for each in definition.depends_on:
        # A service that has ended has no address.
        if each.service not in translation.application.services or each.condition == "service_completed_successfully":
            continue
        for served in translation.ports[each.service]:
            name = _variable(served.service)
            yield f"{name}_SERVICE_HOST", served.host
            yield f"{name}_SERVICE_PORT", served.client_port


def _variable(name: str) -> str:
    return object_name(name).replace("-", "_").upper()


def _telemetry(translation: TranslationContext, definition: ServiceDefinition) -> Iterator[tuple[str, str]]:
    """Where to send telemetry: for processes, and for containers with a build."""
    collector = collector_of(translation)
    if collector is None or collector is definition or not (definition.is_process or definition.build):
        return
    found = _endpoint(translation, definition, collector)
    if found is None:
        translation.remarks.warn(
            definition,
            f"service {collector.name} collects telemetry, but publishes no port 4317 or 4318 that this service can reach",
        )
        return
    endpoint, protocol = found
    yield "OTEL_EXPORTER_OTLP_ENDPOINT", endpoint
    yield "OTEL_EXPORTER_OTLP_PROTOCOL", protocol
    yield "OTEL_SERVICE_NAME", definition.name


def collector_of(translation: TranslationContext) -> ServiceDefinition | None:
    """The service that collects telemetry: the declared one, or the only one that looks like a collector."""
    services = translation.application.services
    if translation.application.collector is not None:
        return services.get(translation.application.collector)
    found = [each for each in services.values() if _looks_like_a_collector(each)]
    return found[0] if len(found) == 1 else None


def _looks_like_a_collector(definition: ServiceDefinition) -> bool:
    targets = {*definition.expose, *(each.target for each in definition.ports)}
    image = definition.image or ""
    return bool(targets & _OTLP_PORTS.keys()) or any(each in image for each in _COLLECTOR_IMAGES)


def _endpoint(
    translation: TranslationContext, consumer: ServiceDefinition, collector: ServiceDefinition
) -> tuple[str, str] | None:
    """The URL and the protocol."""
    inside = not consumer.is_process and not collector.is_process
    if inside and set(translation.networks(consumer)) & set(translation.networks(collector)):
        targets = {*collector.expose, *(each.target for each in collector.ports)} & _OTLP_PORTS.keys()
        port = 4318 if not targets or 4318 in targets else 4317
        return f"http://{collector.name}:{port}", _OTLP_PORTS[port]
    for number, protocol in _OTLP_PORTS.items():
        for served in translation.ports[collector.name]:
            if served.port.target == number:
                return f"http://{_host(consumer, served)}:{served.reached_port}", protocol
    return None


def _host(consumer: ServiceDefinition, served: ServedPort) -> str:
    if not consumer.is_process:
        return served.service
    return f"[{served.host}]" if ":" in served.host else served.host
