"""``steersman serve``: serves a Kubernetes API with its controllers on a port, until it is stopped.

Guarantees
- When the line with the kubeconfig is printed, the server answers; only that line goes to stdout.
- The exit code is 0 after a requested stop, 1 with a reason if it cannot serve.
- With a directory, everything that was answered survives a restart, and the certificates stay valid.
- With ``--pods``, workloads get Pods and become ready; nothing is executed.
- A foreign kubeconfig is never overwritten.
"""

from __future__ import annotations

import asyncio
import shlex
import signal
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from steersman.apiserver import AuditFile, AuditHook, StorageError, User, check_owned_folder
from steersman.cli.console import show_data, tell, tell_banner
from steersman.cli.failure import Failure
from steersman.cli.generate.crds import resource_classes
from steersman.cli.request_log import show_request
from steersman.cli.targets.modules import look_here_first, module_and_name
from steersman.client import Client
from steersman.controlplane import ControlPlane, is_controller
from steersman.kinds.index import KUBERNETES
from steersman.objects import Object, Tree
from steersman.telemetry import configure_logging

if TYPE_CHECKING:
    from steersman.kinds.core_v1 import Pod
    from steersman.testing import PodOutcome

_READS = frozenset({"get", "list", "watch"})
#: The user that runs workloads with ``--pods``.
_RUNNER = User(name="system:kube-controller-manager", groups=("system:authenticated", "system:masters"))


class ServeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of the command line."""

    port: int = 0
    host: str = "127.0.0.1"
    data: str | None = None
    kubeconfig: str | None = None
    #: Modules, or classes in them: ``module`` or ``module:Site``.
    resources: Sequence[str] = ()
    audit: str | None = None
    #: ``all``, ``none``, or comma-separated names.
    controllers: str = "all"
    #: Comma-separated names.
    enable_admission_plugins: str = ""
    disable_admission_plugins: str = ""
    #: Whether workloads get Pods, and Pods become ready.
    pods: bool = False
    verbose: bool = False


def serve_api(options: ServeOptions) -> int:
    """Serve; returns an exit code."""
    configure_logging(level="INFO" if options.verbose else "WARNING", form="terminal")
    classes = _classes(options.resources)
    try:
        with ExitStack() as stack:
            hook = _hook(options, stack)
            folder = Path(options.data).absolute() if options.data else None
            if folder is not None:
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                check_owned_folder(folder, private=True)
            plane = ControlPlane(
                controllers=_controllers(options.controllers),
                port=options.port,
                host=options.host,
                folder=folder,
                kubeconfig=Path(options.kubeconfig).absolute() if options.kubeconfig else None,
                resources=classes,
                authorizer="rbac",
                audit=hook,
                enable_admission_plugins=_names(options.enable_admission_plugins),
                disable_admission_plugins=_names(options.disable_admission_plugins),
            )
            asyncio.run(_serve(plane, list(_lines(options, classes, plane)), pods=options.pods))
    except OSError as error:
        raise Failure(_reason(error)) from error
    except (StorageError, TypeError, ValueError) as error:
        raise Failure(str(error)) from error
    return 0


async def _serve(plane: ControlPlane, lines: list[tuple[str, str]], *, pods: bool) -> None:
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(plane)
        if pods:
            await stack.enter_async_context(_running_pods(plane))
        server = ("server", f"{plane.url}, compatible with Kubernetes {KUBERNETES}")
        tell_banner("serves a Kubernetes API", [server, *lines])
        tell("In another terminal:")
        show_data(f"export KUBECONFIG={shlex.quote(str(plane.kubeconfig))}\n")
        tell()
        await stopped.wait()
    tell("stopped")


@asynccontextmanager
async def _running_pods(plane: ControlPlane) -> AsyncGenerator[None]:
    """Give workloads Pods and let the Pods run, for a block."""
    from steersman.testing import WorkloadRunner  # noqa: PLC0415 - a bare server starts faster without it

    async with (
        Client(plane.transport(_RUNNER), field_manager="pod-runner") as client,
        WorkloadRunner(client, outcome=_outcome, crashes=True),
    ):
        yield


def _outcome(pod: Pod) -> PodOutcome:
    """How far a Pod gets: one that is meant to end succeeds, such as that of a Job; others run and are ready."""
    from steersman.testing import PodRunning, PodSucceeded  # noqa: PLC0415 - see above

    return PodRunning() if pod.spec.restart_policy in {None, "Always"} else PodSucceeded()


def _lines(options: ServeOptions, classes: list[type[Object]], plane: ControlPlane) -> Iterator[tuple[str, str]]:
    yield "kinds", "all of Kubernetes"
    for cls in classes:
        yield "kinds", str(cls.gvk())
    if options.data:
        yield "objects", f"stored in {Path(options.data).absolute()}"
    else:
        yield "objects", "in memory, lost at the end; --data DIRECTORY stores them"
    names = ", ".join(name.removesuffix("-controller") for name in plane.controllers)
    yield "controllers", names or "none: dependents of deleted objects stay, and so do deleted namespaces"
    if options.pods:
        yield "pods", "workloads get Pods, which become ready; no container starts"
    else:
        yield "pods", "none: workloads never become ready; --pods lets them"
    if options.audit:
        yield "audit", str(Path(options.audit).absolute())
    yield "stop", "Ctrl-C"


def _controllers(text: str) -> list[str] | None:
    """The controllers of the command line; None for all."""
    match text:
        case "all":
            return None
        case "none":
            return []
        case _:
            return _names(text)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _classes(names: Sequence[str]) -> list[type[Object]]:
    """The resource classes of the command line."""
    if names:
        look_here_first()
    wanted = [module_and_name(text, "class", nothing="all of them") for text in names]
    return list(dict.fromkeys(cls for module, attribute in wanted for cls in resource_classes(module, attribute)))


def _hook(options: ServeOptions, stack: ExitStack) -> AuditHook | None:
    hooks: list[Callable[[Tree], None]] = []
    if options.audit:
        hooks.append(stack.enter_context(AuditFile(options.audit)))
    if options.verbose:
        hooks.append(_show)

    def tell(audit_event: Tree) -> None:
        for hook in hooks:
            hook(audit_event)

    return tell if hooks else None


def _show(audit_event: Tree) -> None:
    """Show a request, unless it is a read by a controller."""
    user = audit_event["user"].get("username", "")
    if audit_event["verb"] not in _READS or not (is_controller(user) or user == _RUNNER.name):
        show_request(audit_event)


def _reason(error: OSError) -> str:
    """The reason of a system error, with its file."""
    if error.filename is None:
        return error.strerror or str(error)
    return f"cannot use {error.filename}: {error.strerror}; choose another place with --data, --kubeconfig or --audit"
