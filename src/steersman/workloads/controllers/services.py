"""The controller of Services: a stable address, and the endpoints behind it.

Guarantees
- The effective address and port are assigned before any endpoint exists, and stay: while endpoints come and go, when the
  proxy is killed, and from one run of a project to the next.
- A Service is Ready while it listens and has an endpoint.
- If another process holds the port, the status names it, and the Service listens as soon as the port is free. Until then
  the condition Served is False: nothing that depends on the Service's workloads starts, and templates wait.
- A finalizer precedes the proxy: a Service is gone only when its port is free.
"""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Sequence
from typing import Final

import msgspec

from steersman import aio
from steersman.controller import (
    Blueprint,
    ChannelSource,
    Context,
    Done,
    Outcome,
    Request,
    RequeueAfter,
    View,
    controller_for,
)
from steersman.manager import Manager
from steersman.objects import Condition, Key, set_condition
from steersman.patterns import add_finalizer, remove_finalizer
from steersman.workloads import transitions
from steersman.workloads.kinds import PORT_SETTING, Endpoint, Service, ServiceStatus
from steersman.workloads.kinds.service import SERVED, ServiceObservation
from steersman.workloads.ports import NoPortLeft, PortRegistry
from steersman.workloads.proxies import CannotListen, Forwarding, Proxy
from steersman.workloads.serving import process_behind

#: Keeps a Service until the proxy no longer listens for it.
FINALIZER: Final = "steersman.dev/proxy"
#: The index of Endpoints by the name of their Service.
_BY_SERVICE: Final = "service"
#: Seconds between two attempts to listen at a port that another process holds.
RETRY: Final = 1.0
_IPV4, _IPV6 = "127.0.0.1", "::1"
_ALL_IPV4, _ALL_IPV6 = "0.0.0.0", "::"  # noqa: S104 - the user asks for it
#: The addresses at which each mode listens, and the address at which this machine reaches them.
_MODES: Final[dict[str, tuple[tuple[str, ...], str]]] = {
    "Localhost": ((_IPV4, _IPV6), "localhost"),
    "IPv4ZeroOne": ((_IPV4,), _IPV4),
    "IPv6ZeroOne": ((_IPV6,), _IPV6),
    "AllInterfaces": ((_ALL_IPV4, _ALL_IPV6), "localhost"),
    "IPv4AllInterfaces": ((_ALL_IPV4,), _IPV4),
    "IPv6AllInterfaces": ((_ALL_IPV6,), _IPV6),
}


class InvalidAddress(ValueError):
    """An address at which no service can listen."""


class _Outcome(msgspec.Struct):
    """What became of a Service in one reconcile."""

    address: str | None = None
    port: int | None = None
    problem: str = ""
    reason: str = "NoEndpoint"
    pid: int | None = None
    endpoint: str | None = None
    """The name of the endpoint whose address a Proxyless service has."""


def add_services(manager: Manager, *, proxy: Proxy, ports: PortRegistry) -> None:
    """Add the controller of Services to a manager, with the index of Endpoints that it reads."""
    manager.index(Endpoint, _BY_SERVICE, lambda endpoint: [endpoint.spec.service_name])
    manager.add(_blueprint(proxy, ports))


def _blueprint(proxy: Proxy, ports: PortRegistry) -> Blueprint:
    source = ChannelSource("proxy", debounce=0.2)
    proxy.watch(lambda name: source.send(Key("", name), "the proxy reports a change"))
    builder = controller_for(Service).watches(Endpoint, map=_service_of).on(source)
    return builder.options(concurrency=8).run_with(_Services(proxy, ports))


def _service_of(view: View[Endpoint]) -> list[Key]:
    return [Key("", view.object.spec.service_name)]


class _Services:
    def __init__(self, proxy: Proxy, ports: PortRegistry) -> None:
        self._proxy = proxy
        self._ports = ports

    async def reconcile(self, ctx: Context, request: Request) -> Outcome:
        """Bring one Service closer to its spec."""
        service = await ctx.client.find(Service, request.key)
        if service is None:
            return Done()
        if service.deleting:
            await self._proxy.remove(service.key.name)
            self._ports.release(_port_key(service))
            await remove_finalizer(ctx.client, service, FINALIZER)
            return Done()
        service = await add_finalizer(ctx.client, service, FINALIZER)
        endpoints = sorted(
            (each for each in await ctx.client.by_index(Endpoint, _BY_SERVICE, service.key.name) if not each.deleting),
            key=lambda each: each.key.name,
        )
        if service.spec.address_allocation_mode == "Proxyless":
            await self._proxy.remove(service.key.name)
            outcome = _without_proxy(service, endpoints)
            outcome.problem = self._held_by_another(service, has_endpoint=bool(endpoints))
            outcome.reason = "PortInUse" if outcome.problem else outcome.reason
        else:
            outcome = await self._listen(service, endpoints)
        known = service.status.steersman if service.status is not None else None
        self._write(service, outcome, len(endpoints))
        service = (await ctx.client.save(service)).object
        if outcome.problem and (known is None or known.message != outcome.problem):
            ctx.events.record(service, "Warning", outcome.reason, "Listening", outcome.problem)
        return RequeueAfter(RETRY) if outcome.problem else Done()

    async def _listen(self, service: Service, endpoints: Sequence[Endpoint]) -> _Outcome:
        """Let the proxy listen, at the address and port that the Service has or gets now."""
        places = tuple((each.spec.address, each.spec.port) for each in endpoints)
        processes = tuple(process_behind(each) for each in endpoints)
        status, name = service.status or ServiceStatus(), service.key.name
        try:
            addresses, address = addresses_of(service)
        except InvalidAddress as error:
            await self._proxy.remove(name)
            return _Outcome(problem=str(error), reason="InvalidAddress")
        kept = status.effective_port
        port = service.spec.port or kept
        # A new port may be taken between its choice and its use: then there is another one, once.
        for attempt in range(2):
            chosen = port
            if not chosen:
                try:
                    chosen = await self._ports.allocate(_port_key(service), addresses[0])
                except NoPortLeft as error:
                    return _Outcome(problem=f"Service {name}: {error}", reason="NoPortLeft")
            try:
                await self._proxy.keep(name, Forwarding(addresses, chosen, places, processes))
            except CannotListen as error:
                if not port and not attempt:
                    self._ports.release(_port_key(service))
                    continue
                # An address that consumers may use already stays, although it does not work now.
                given = (status.effective_address, kept) if kept == chosen else (None, None)
                return _Outcome(*given, problem=self._explain(service, error), reason=_reason(error))
            return _Outcome(address, chosen, pid=self._proxy.pid)
        raise AssertionError("the second attempt returns")

    def _held_by_another(self, service: Service, *, has_endpoint: bool) -> str:
        """The problem of a Proxyless service whose port another program has; empty if it is free."""
        known = service.status.steersman if service.status is not None else None
        was_held = known is not None and " is in use by " in (known.message or "")
        if not service.spec.port or (has_endpoint and not was_held):
            return ""
        address = service.spec.address or _IPV4
        holder = self._ports.holder(address, service.spec.port, other=True)
        return _in_use(service, address, service.spec.port, holder) if holder is not None else ""

    def _explain(self, service: Service, error: CannotListen) -> str:
        if not error.in_use:
            return f"Service {service.key.name} {error}"
        holder = self._ports.holder(error.address, error.port) or "another process"
        return _in_use(service, error.address, error.port, holder)

    def _write(self, service: Service, outcome: _Outcome, endpoints: int) -> None:
        status = service.ensure_status()
        proxied = self._proxy.state(service.key.name)
        message = outcome.problem
        if not message and not endpoints:
            message = f"Service {service.key.name} has no endpoint: nothing that runs serves it"
        refusal = f"{proxied.refusal}, so connections wait" if proxied.refusal else ""
        ready = not outcome.problem and endpoints > 0
        state = "Ready" if ready else "NotReady"
        transitions.check("Service", status.state, state)
        status.state = state
        status.observed_generation = service.generation
        status.effective_address, status.effective_port = outcome.address, outcome.port
        status.proxy_process_pid = outcome.pid
        status.proxyless_endpoint_name = outcome.endpoint
        status.steersman = ServiceObservation(
            message=message or refusal or None, endpoints=endpoints, parked_connections=proxied.parked
        )
        for kind, holds, why in (("Ready", ready, message), (SERVED, not outcome.problem, outcome.problem)):
            condition = Condition(
                type=kind,
                status="True" if holds else "False",
                reason="Listening" if holds else outcome.reason,
                message=why,
                observed_generation=service.generation,
            )
            set_condition(status, condition, now=aio.utc_now())


def addresses_of(service: Service) -> tuple[tuple[str, ...], str]:
    """The addresses at which a Service listens, and its effective address. Raises `InvalidAddress`."""
    given, mode = service.spec.address, service.spec.address_allocation_mode
    if given:
        if given == "localhost":
            return _MODES["Localhost"]
        try:
            parsed = ipaddress.ip_address(given.removeprefix("[").removesuffix("]"))
        except ValueError:
            raise InvalidAddress(
                f"Service {service.key.name}: spec.address must be an IP address or localhost (got {given})"
            ) from None
        reachable = (_IPV4 if parsed.version == 4 else _IPV6) if parsed.is_unspecified else str(parsed)
        return (str(parsed),), reachable
    if mode == "IPv4Loopback":
        address = _loopback_address(service.key.name)
        return (address,), address
    return _MODES[mode]


def _loopback_address(name: str) -> str:
    """An address 127.x.y.z that stays the same for a name."""
    first, second, third = hashlib.sha256(name.encode()).digest()[:3]
    return f"127.{first % 254 + 1}.{second}.{third % 254 + 1}"


def _without_proxy(service: Service, endpoints: Sequence[Endpoint]) -> _Outcome:
    """The address of the endpoint that was chosen before, if it still exists, or of the first one."""
    chosen = service.status.proxyless_endpoint_name if service.status is not None else None
    found = next((each for each in endpoints if each.key.name == chosen), endpoints[0] if endpoints else None)
    if found is None:
        return _Outcome()
    return _Outcome(found.spec.address, found.spec.port, endpoint=found.key.name)


def _in_use(service: Service, address: str, port: int, holder: str) -> str:
    setting = (service.metadata.annotations or {}).get(PORT_SETTING, "")
    if setting:
        hint = f"stop it, or change {setting}"
    elif service.spec.address_allocation_mode == "Proxyless":
        hint = "stop it, or use another port"
    else:
        hint = "stop it, or set spec.port to another port" if service.spec.port else "stop it, or set spec.port"
    return f"Service {service.key.name}: port {port} is in use by {holder}, at {address}; {hint}"


def _reason(error: CannotListen) -> str:
    return "PortInUse" if error.in_use else "CannotListen"


def _port_key(service: Service) -> str:
    return f"service/{service.key.name}"
