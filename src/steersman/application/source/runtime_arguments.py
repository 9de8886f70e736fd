"""Arguments of the container runtime for keys of a service that have no field of their own."""

from __future__ import annotations

from collections.abc import Iterator

from steersman.application.syntax.nodes import ListNode, MapNode, Node, ScalarNode, is_null
from steersman.application.syntax.values import Values

#: Keys whose string or number becomes one option.
_TEXTS = {
    "cgroup": "--cgroupns",
    "cgroup_parent": "--cgroup-parent",
    "cpu_period": "--cpu-period",
    "cpu_quota": "--cpu-quota",
    "cpu_rt_period": "--cpu-rt-period",
    "cpu_rt_runtime": "--cpu-rt-runtime",
    "cpu_shares": "--cpu-shares",
    "cpus": "--cpus",
    "cpuset": "--cpuset-cpus",
    "ipc": "--ipc",
    "mac_address": "--mac-address",
    "mem_swappiness": "--memory-swappiness",
    "oom_score_adj": "--oom-score-adj",
    "pid": "--pid",
    "pids_limit": "--pids-limit",
    "runtime": "--runtime",
    "userns_mode": "--userns",
    "uts": "--uts",
}
_SIZES = {
    "mem_limit": "--memory",
    "mem_reservation": "--memory-reservation",
    "memswap_limit": "--memory-swap",
    "shm_size": "--shm-size",
}
#: Keys whose list items become one option each.
_LISTS = {
    "cap_add": "--cap-add",
    "cap_drop": "--cap-drop",
    "device_cgroup_rules": "--device-cgroup-rule",
    "dns": "--dns",
    "dns_opt": "--dns-option",
    "dns_search": "--dns-search",
    "group_add": "--group-add",
    "security_opt": "--security-opt",
}
_PAIRS = {"annotations": "--annotation", "storage_opt": "--storage-opt", "sysctls": "--sysctl"}
_FLAGS = {
    "init": "--init",
    "oom_kill_disable": "--oom-kill-disable",
    "privileged": "--privileged",
    "read_only": "--read-only",
}

#: The keys that become arguments.
ARGUMENT_KEYS = (*_TEXTS, *_SIZES, *_LISTS, *_PAIRS, *_FLAGS, "devices", "extra_hosts", "ulimits")


def runtime_arguments(values: Values, service: MapNode, deploy: MapNode | None) -> tuple[str, ...]:
    """The arguments for a service."""
    return (
        *_texts(values, service),
        *_lists(values, service),
        *_composed(values, service),
        *_resources(values, deploy),
    )


def _texts(values: Values, service: MapNode) -> Iterator[str]:
    for key, option in _TEXTS.items():
        node = service.get(key)
        text = values.text(node, key)
        if node is None or not text:
            continue
        if text.startswith("service:"):
            # The name of another service's container is not known before it starts.
            values.report.ignore(service.key(key), f"{key}: {text}")
        else:
            yield from (option, text)
    for key, option in _SIZES.items():
        if (size := values.size(service.get(key), key)) is not None:
            yield from (option, size)
    for key, option in _FLAGS.items():
        if values.boolean(service.get(key), key):
            yield option


def _lists(values: Values, service: MapNode) -> Iterator[str]:
    for key, option in _LISTS.items():
        for text in values.text_or_texts(service.get(key), key):
            yield from (option, text)
    for key, option in _PAIRS.items():
        for name, value in values.given_pairs(service.get(key), key).items():
            yield from (option, f"{name}={value}")


def _composed(values: Values, service: MapNode) -> Iterator[str]:
    for item in values.items(service.get("devices"), "devices"):
        if isinstance(item, MapNode):
            values.check_keys(item, "a device", ("source", "target", "permissions"))
            parts = [values.text(item.get(name), name) for name in ("source", "target", "permissions")]
            yield from ("--device", ":".join(part for part in parts if part))
        elif (text := values.text(item, "a device")) is not None:
            yield from ("--device", text)
    for name, address in _extra_hosts(values, service.get("extra_hosts")):
        yield from ("--add-host", f"{name}:{address}")
    limits = values.table(service.get("ulimits"), "ulimits")
    for name, limit in limits.items.items() if limits else ():
        if isinstance(limit, MapNode):
            values.check_keys(limit, "a limit", ("soft", "hard"))
            soft, hard = (values.integer(limit.get(part), part, least=-1, most=2**63) for part in ("soft", "hard"))
            yield from ("--ulimit", f"{name}={soft}:{hard}")
        elif (number := values.integer(limit, f"the limit {name}", least=-1, most=2**63)) is not None:
            yield from ("--ulimit", f"{name}={number}")


def _extra_hosts(values: Values, node: Node | None) -> Iterator[tuple[str, str]]:
    if isinstance(node, MapNode):
        for name, value in node.items.items():
            for address in values.text_or_texts(value, "extra_hosts"):
                yield name, address
        return
    for item in values.items(node, "extra_hosts"):
        text = values.text(item, "an extra host") or ""
        sign = "=" if "=" in text else ":"
        name, _, address = text.partition(sign)
        if name and address:
            yield name, address.removeprefix("[").removesuffix("]")
        else:
            values.report.error(item, "an extra host must be NAME=ADDRESS or NAME:ADDRESS")


def _resources(values: Values, deploy: MapNode | None) -> Iterator[str]:
    resources = values.table(deploy.get("resources"), "resources") if deploy else None
    if resources is None:
        return
    values.check_keys(resources, "resources", ("limits", "reservations"))
    if (limits := values.table(resources.get("limits"), "limits")) is not None:
        values.check_keys(limits, "limits", ("cpus", "memory", "pids"))
        if cpus := values.text(limits.get("cpus"), "cpus"):
            yield from ("--cpus", cpus)
        if memory := values.size(limits.get("memory"), "memory"):
            yield from ("--memory", memory)
        if (pids := values.integer(limits.get("pids"), "pids", least=-1)) is not None:
            yield from ("--pids-limit", str(pids))
    if (reservations := values.table(resources.get("reservations"), "reservations")) is not None:
        values.check_keys(reservations, "reservations", ("memory",), ("cpus", "generic_resources", "devices"))
        if memory := values.size(reservations.get("memory"), "memory"):
            yield from ("--memory-reservation", memory)


def network_mode(values: Values, service: MapNode) -> str | None:
    """The value of ``network_mode``; None if it names a service, which has no effect."""
    text = values.text(service.get("network_mode"), "network_mode")
    if text is not None and text.startswith("service:"):
        values.report.ignore(service.key("network_mode"), f"network_mode: {text}")
        return None
    return text


def namespace_services(service: MapNode) -> Iterator[tuple[Node, str]]:
    """The services that a service names in ``network_mode``, ``ipc``, ``pid``, ``links`` and ``volumes_from``."""
    for key in ("network_mode", "ipc", "pid"):
        node = service.get(key)
        if isinstance(node, ScalarNode) and node.text.startswith("service:"):
            yield node, node.text.removeprefix("service:")
    for key in ("links", "volumes_from"):
        node = service.get(key)
        for item in node.items if isinstance(node, ListNode) else ():
            if isinstance(item, ScalarNode) and not is_null(item) and not item.text.startswith("container:"):
                yield item, item.text.partition(":")[0]
