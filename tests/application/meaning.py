"""The meaning of services, in one form: as Compose's own library reads them, and as the objects have them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from steersman.objects import parse_duration
from steersman.workloads.kinds import GENERATED_NAME

Tree = dict[str, Any]


def of_compose(project: Tree) -> dict[str, Tree]:
    """The services of a project as ``docker compose config --format json`` prints it."""
    volumes, networks = project.get("volumes", {}), project.get("networks", {})
    found: dict[str, Tree] = {}
    for name, service in project["services"].items():
        health = service.get("healthcheck") or {}
        if health.get("disable") or health.get("test") == ["NONE"]:
            health = {}
        joined = service.get("networks") or {"default": None}
        found[name] = {
            "image": service.get("image"),
            "entrypoint": service.get("entrypoint"),
            "command": service.get("command"),
            "environment": {key: value for key, value in service.get("environment", {}).items() if value is not None},
            "ports": sorted(map(_compose_port, service.get("ports", ())), key=str),
            "expose": sorted(str(each) for each in service.get("expose", ())),
            "depends_on": {key: each["condition"] for key, each in service.get("depends_on", {}).items()},
            "healthcheck": _compose_health(health),
            "restart": service.get("restart", "no"),
            "mounts": sorted(
                [
                    *(_compose_mount(each, volumes) for each in service.get("volumes", ())),
                    *(("tmpfs", "", path, False) for path in service.get("tmpfs", ())),
                ]
            ),
            "networks": {
                networks.get(key, {}).get("name", f"{project['name']}_{key}"): sorted((use or {}).get("aliases", ()))
                for key, use in joined.items()
            },
            "files": sorted(
                [
                    _compose_file(each, f"/run/secrets/{each.get('target') or each['source']}")
                    for each in service.get("secrets", ())
                ]
                + [
                    _compose_file(each, f"/{each.get('target') or each['source']}")
                    for each in service.get("configs", ())
                ]
            ),
            "user": service.get("user"),
            "working_dir": service.get("working_dir"),
            "hostname": service.get("hostname"),
            "container_name": service.get("container_name"),
            "stop_signal": service.get("stop_signal"),
            "stop_grace_period": _seconds(service.get("stop_grace_period")),
            "scale": service.get("scale") or (service.get("deploy") or {}).get("replicas") or 1,
            "labels": service.get("labels", {}),
            "tty": service.get("tty", False),
            "stdin_open": service.get("stdin_open", False),
            "pull_policy": service.get("pull_policy", "missing"),
            "platform": service.get("platform"),
            "build": _compose_build(service.get("build")),
        }
        entrypoint = found[name].pop("entrypoint")
        command = found[name].pop("command")
        found[name]["words"] = (
            entrypoint[:1] if entrypoint is not None else None,
            (entrypoint or [])[1:] + (command or []),
        )
    return found


def of_objects(objects: Iterable[Tree]) -> dict[str, Tree]:
    """The services of an application by its objects."""
    objects = list(objects)
    addresses = {each["metadata"]["name"]: each["spec"] for each in objects if each["kind"] == "Service"}
    networks = {
        each["metadata"]["name"]: each["spec"]["networkName"] for each in objects if each["kind"] == "ContainerNetwork"
    }
    containers = [each for each in objects if each["kind"] == "Container"]
    owners = {each["metadata"]["name"]: _service(each) for each in containers}
    found: dict[str, Tree] = {}
    for tree in containers:
        spec, name = tree["spec"], _service(tree)
        added, options = spec.get("steersman") or {}, _options(spec.get("runArgs", ()))
        scale = sum(owner == name for owner in owners.values())
        found[name] = {
            "image": None if spec["image"].startswith("localhost/") and "build" in spec else spec["image"],
            "words": (_entrypoint(spec), spec.get("args", [])),
            "environment": {each["name"]: each["value"] for each in spec.get("env", ())},
            "ports": sorted(_ports(tree, addresses), key=str),
            "expose": sorted(options.get("--expose", ())),
            "depends_on": {owners[each["name"]]: _CONDITIONS[each["condition"]] for each in added.get("dependsOn", ())},
            "healthcheck": _health(added.get("healthProbes", ())),
            "restart": options.get("--restart", [spec["restartPolicy"]])[0],
            "mounts": sorted(
                [
                    *(
                        (each["type"], each["source"], each["target"], each["readOnly"])
                        for each in spec.get("volumeMounts", ())
                    ),
                    *(("tmpfs", "", path, False) for path in options.get("--tmpfs", ())),
                ]
            ),
            "networks": {
                networks[each["name"]]: sorted(set(each.get("aliases") or ()) - {name}) for each in spec["networks"]
            },
            "files": sorted(
                (f"/{each['name']}", each.get("mode"), each.get("owner"), each.get("group"))
                for files in spec.get("createFiles", ())
                for each in files["entries"]
            ),
            "user": _one(options, "--user"),
            "working_dir": _one(options, "--workdir"),
            "hostname": _one(options, "--hostname"),
            "container_name": None if GENERATED_NAME in tree["metadata"]["annotations"] else spec["containerName"],
            "stop_signal": added.get("stopSignal"),
            "stop_grace_period": _seconds(added.get("stopTimeout")),
            "scale": scale,
            "labels": {each["key"]: each["value"] for each in spec.get("labels", ())},
            "tty": "--tty" in options,
            "stdin_open": "--interactive" in options,
            "pull_policy": spec["pullPolicy"],
            "platform": _one(options, "--platform"),
            "build": _build(spec.get("build")),
        }
    return found


_CONDITIONS = {
    "Started": "service_started",
    "Healthy": "service_healthy",
    "Completed": "service_completed_successfully",
}


def _seconds(text: str | None) -> float | None:
    return parse_duration(text).total_seconds() if text else None


def _compose_port(port: Tree) -> tuple[object, ...]:
    published = int(port["published"]) if port.get("published") else None
    return port.get("host_ip"), published, port["target"], port.get("protocol", "tcp")


def _compose_mount(mount: Tree, volumes: Mapping[str, Tree]) -> tuple[object, ...]:
    source = mount.get("source", "")
    if mount["type"] == "volume" and source:
        source = volumes[source]["name"]
    return mount["type"], source, mount["target"], mount.get("read_only", False)


def _compose_file(grant: Tree, path: str) -> tuple[object, ...]:
    target = grant.get("target") or ""
    mode = int(grant["mode"], 8) if grant.get("mode") else 0o444
    owner, group = (int(grant[key]) if grant.get(key) else None for key in ("uid", "gid"))
    return target if target.startswith("/") else path, mode, owner, group


def _compose_health(health: Tree) -> tuple[object, ...] | None:
    match health.get("test"):
        case ["CMD", *words]:
            found = words
        case ["CMD-SHELL", text]:
            found = ["/bin/sh", "-c", text]
        case _:
            return None
    times = [_seconds(health.get(key, standard)) for key, standard in (("interval", "30s"), ("timeout", "30s"))]
    return found, *times, health.get("retries", 3), _seconds(health.get("start_period"))


def _compose_build(build: Tree | None) -> Tree | None:
    if build is None:
        return None
    is_local = "://" not in build["context"]
    dockerfile = build.get("dockerfile")
    if dockerfile == "Dockerfile":
        dockerfile = None
    elif dockerfile and is_local:
        dockerfile = f"{build['context']}/{dockerfile}"
    return {
        "context": build["context"],
        "dockerfile": dockerfile,
        "args": build.get("args", {}),
        "target": build.get("target"),
        "labels": build.get("labels", {}),
        "tags": build.get("tags", []),
    }


def _service(tree: Tree) -> str:
    return tree["metadata"]["labels"]["steersman.dev/service"]


def _options(arguments: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    name = ""
    for each in arguments:
        if each.startswith("--"):
            name = each
            found.setdefault(name, [])
        else:
            found[name].append(each)
    return found


def _one(options: dict[str, list[str]], name: str) -> str | None:
    return options[name][0] if name in options else None


def _entrypoint(spec: Tree) -> list[str] | None:
    if spec.get("command") is None:
        return None
    return [spec["command"]] if spec["command"] else []


def _ports(tree: Tree, addresses: Mapping[str, Tree]) -> list[tuple[object, ...]]:
    found: list[tuple[object, ...]] = []
    for each in json.loads(tree["metadata"]["annotations"].get("service-producer", "[]")):
        address = addresses[each["serviceName"]]
        found.append((address.get("address"), address["port"] or None, each["port"], "tcp"))
    return found + [
        (each.get("hostIP"), each["hostPort"] or None, each["containerPort"], "udp")
        for each in tree["spec"].get("ports", ())
        if each["protocol"] == "UDP"
    ]


def _health(probes: Iterable[Tree]) -> tuple[object, ...] | None:
    for each in probes:
        schedule = each["schedule"]
        times = [_seconds(schedule.get(key)) for key in ("interval", "timeout", "startPeriod")]
        return each["exec"]["command"], *times[:2], schedule["failureThreshold"], times[2]
    return None


def _build(build: Tree | None) -> Tree | None:
    if build is None:
        return None
    return {
        "context": build["context"],
        "dockerfile": build.get("dockerfile"),
        "args": {each["name"]: each["value"] for each in build.get("args", ())},
        "target": build.get("stage"),
        "labels": {each["key"]: each["value"] for each in build.get("labels", ())},
        "tags": build.get("tags", []),
    }
