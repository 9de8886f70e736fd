"""The arguments of the command lines of Podman and Docker. Pure.

Guarantees
- No value of a variable stands in an argument, where every user of the machine could read it. Values go through the
  standard input (``--env-file /dev/stdin``), or, if they have several lines, through the environment of the command.
- No value of a build argument does either, unless its name would change the command: such a value must not look like a
  secret.
- No name from outside is read as an option: each stands behind ``--``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from steersman.workloads.containers.runner import (
    ContainerLaunch,
    ContainerRuntimeError,
    ExecLaunch,
    ImageBuild,
    Mount,
    PublishedPort,
)
from steersman.workloads.environment import masked

#: Variables that would change the command itself: those of the runtimes, of Go, of the C library, of systemd and of ssh, which
#: reaches a Docker elsewhere, and of the languages in which a command of that name may be a script.
_OF_THE_COMMAND = re.compile(
    r"(PATH|HOME|USER|TMPDIR|DOCKER_.*|CONTAINERS?_.*|XDG_.*|LD_.*|SSL_.*|_.*|BUILD(AH|KIT|X)_.*|PODMAN_.*|REGISTRY_.*"
    r"|STORAGE_.*|GO(COVERDIR|DEBUG|GC|MAXPROCS|MEMLIMIT|ROOT|TRACEBACK)|GCONV_PATH|LOCPATH|GLIBC_.*|MALLOC_.*|NOTIFY_.*"
    r"|LISTEN_.*|SSH_(ASKPASS.*|AUTH_SOCK|SK_PROVIDER)|OPENSSL_.*|ENV|BASH.*|SHELLOPTS|PS4|IFS|PYTHON[A-Z]+|PERL[0-9A-Z]*)"
)
_PROXY = re.compile(r"[A-Za-z]+_(PROXY|proxy)")
#: Keys that detach a terminal from a container of Docker: no user types them one after another.
_NEVER_TYPED = "ctrl-@,ctrl-_,ctrl-@,ctrl-^,ctrl-@"
_NAME = re.compile(r"[^\s=#*][^\s=*]*")


class Environment(msgspec.Struct, frozen=True):
    """How variables reach a command: an env file, and the arguments and variables for values with several lines."""

    file: bytes
    arguments: tuple[str, ...]
    variables: Mapping[str, str]


def environment(env: Mapping[str, str]) -> Environment:
    """Split variables into those of an env file, and those that only the environment of the command can hold."""
    lines: list[str] = []
    variables: dict[str, str] = {}
    for name, value in env.items():
        if not _NAME.fullmatch(name) or "\0" in value:
            raise ContainerRuntimeError(f"the variable {name!r} cannot be given to a container: rename it")
        if "\n" not in value and "\r" not in value:
            lines.append(f"{name}={value}")
        elif _OF_THE_COMMAND.fullmatch(name) or _PROXY.fullmatch(name):
            raise ContainerRuntimeError(
                f"the value of {name} has several lines, which a container runtime does not accept"
            )
        else:
            variables[name] = value
    arguments = [argument for name in variables for argument in ("--env", name)]
    return Environment("".join(f"{line}\n" for line in lines).encode(), tuple(arguments), variables)


def create_arguments(launch: ContainerLaunch, env: Environment) -> Iterator[str]:
    """The arguments of ``create``. Its env file is its standard input."""
    yield from ("--pull", "never", "--name", launch.name)
    if env.file:
        yield from ("--env-file", "/dev/stdin")
    yield from env.arguments
    for key, value in launch.labels.items():
        yield from ("--label", f"{key}={value}")
    yield from _first_network(launch)
    for name, address in launch.hosts.items():
        yield from ("--add-host", f"{name}:{address}")
    for mount in launch.mounts:
        yield from ("--mount", _mount(mount))
    for port in launch.ports:
        yield from ("--publish", _published(port))
    if launch.restart_policy != "no":
        yield from ("--restart", launch.restart_policy)
    if launch.stop_signal:
        yield from ("--stop-signal", launch.stop_signal)
    yield from ("--stop-timeout", str(round(launch.stop_timeout)))
    if launch.command is not None:
        yield from ("--entrypoint", launch.command)
    # What passes through is not kept: it may be a whole database.
    yield from ("--interactive", "--log-driver", "none") if launch.attach else ()
    yield from ("--tty",) if launch.attach == "terminal" else ()
    yield from launch.run_args
    yield from ("--", launch.image)
    yield from launch.args


def attach_arguments(runtime: str, container: str, *, terminal: bool, command: Sequence[str] = ()) -> tuple[str, ...]:
    """The arguments that run a command in a container, or start a container, with the streams of the caller.

    ``runtime`` is the name of the container runtime.
    """
    # Otherwise Ctrl-P would wait for Ctrl-Q, which detaches. To Docker an empty sequence means that default.
    without = _NEVER_TYPED if runtime == "docker" else ""
    keys = ("--detach-keys", without) if terminal else ()
    if not command:
        return ("start", "--attach", "--interactive", *keys, "--", container)
    return ("exec", "-it" if terminal else "-i", *keys, "--", container, *command)


def exec_arguments(launch: ExecLaunch, env: Environment) -> Iterator[str]:
    """The arguments of ``exec``. Its env file is its standard input."""
    if launch.folder:
        yield from ("--workdir", launch.folder)
    if env.file:
        yield from ("--env-file", "/dev/stdin")
    yield from env.arguments
    yield from ("--", launch.container, launch.command, *launch.args)


def full_image_name(image: str) -> str:
    """The name of an image with its registry. As in Docker, a name without a registry means Docker Hub."""
    first, slash, _ = image.partition("/")
    if not slash:
        return f"docker.io/library/{image}"
    return image if "." in first or ":" in first or first == "localhost" else f"docker.io/{image}"


def build_arguments(build: ImageBuild) -> Iterator[str]:
    """The arguments of ``build``; `build_variables` has the values of its build arguments."""
    variables = build_variables(build)
    if build.dockerfile:
        yield from ("--file", build.dockerfile)
    if build.pull:
        yield "--pull"
    for tag in build.tags:
        yield from ("--tag", tag)
    for name, value in build.args.items():
        yield from ("--build-arg", f"{name}={value}" if value and name not in variables else name)
    for name, rest in build.secrets:
        yield from ("--secret", f"id={name},{rest}")
    if build.stage:
        yield from ("--target", build.stage)
    for key, value in build.labels.items():
        yield from ("--label", f"{key}={value}")
    if build.platform:
        yield from ("--platform", build.platform)
    yield from ("--", build.context)


def build_variables(build: ImageBuild) -> dict[str, str]:
    """The environment of ``build``: the values of its secrets and of its build arguments."""
    variables = dict(build.env)
    for name, value in build.args.items():
        if not value:
            continue
        looks_secret = masked(name, value) != value
        # The value of a proxy goes to the command itself, too, so it does so only if it has a password.
        if _OF_THE_COMMAND.fullmatch(name) or (_PROXY.fullmatch(name) and not looks_secret):
            if looks_secret:
                raise ContainerRuntimeError(
                    f"the build argument {name} looks like a secret, but the build command has a setting of that name, so"
                    " every user of this machine could read its value: rename it, or use a build secret"
                )
            continue
        if variables.get(name, value) != value or "\0" in value:
            raise ContainerRuntimeError(
                f"the build argument {name} has the name of a secret with another value: rename it"
            )
        variables[name] = value
    return variables


def _first_network(launch: ContainerLaunch) -> Iterator[str]:
    """Docker takes the aliases of one network alone; the others are connected before the start."""
    if launch.networks is None or "--network" in launch.run_args:
        return
    first = next(iter(launch.networks), None)
    yield from ("--network", first.network if first is not None else "none")
    for alias in first.aliases if first is not None else ():
        yield from ("--network-alias", alias)


def _mount(mount: Mount) -> str:
    for path in (mount.source, mount.target):
        if "," in path:
            raise ContainerRuntimeError(
                f"the path {path!r} of a mount contains a comma, which no container runtime accepts"
            )
    source = f",source={mount.source}" if mount.source else ""
    return f"type={mount.type}{source},target={mount.target}" + (",readonly" if mount.read_only else "")


def _published(port: PublishedPort) -> str:
    address = f"[{port.host_ip}]" if ":" in port.host_ip else port.host_ip
    return f"{address}:{port.host_port or ''}:{port.container_port}/{port.protocol}"
