"""The entry point: parses the command line, runs one command, and turns failures into messages and exit codes."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from steersman._version import __version__
from steersman.cli.console import ConsoleParser, take_over_reports, tell_failure
from steersman.cli.failure import Failure
from steersman.cli.number_arguments import count, port, seconds
from steersman.cli.uncollected_imports import uncollected_imports
from steersman.cli.up.leading_options import add_leading_options, merge_leading_options
from steersman.cli.up.parsers import add_application_commands, add_place, add_project, add_terminal


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code of the process."""
    if arguments is None:
        _open_standard_streams()
        take_over_reports()
    options = vars(_parser().parse_args(arguments))
    _raise_open_files_limit()
    try:
        options = merge_leading_options(options, options.pop("command_name"))
        code = _run(options, *options.pop("command"))
        sys.stdout.flush()
    except Failure as failure:
        tell_failure(str(failure))
        return failure.exit_code
    except ModuleNotFoundError as error:
        if "pip install 'steersman[" not in str(error):
            raise
        # The command needs an extra of this package.
        tell_failure(str(error))
        return 1
    except KeyboardInterrupt:
        tell_failure("interrupted")
        return 130
    except BrokenPipeError:
        # The reader of our output is gone; the interpreter must not complain about it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return code


def _open_standard_streams() -> None:
    """Open those that the caller closed, as in ``steersman up >&-``: else the next file would take their number."""
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        try:
            os.fstat(number)
        except OSError:
            descriptor = os.open(os.devnull, os.O_RDWR)
            if descriptor != number:
                os.dup2(descriptor, number)
                os.close(descriptor)
            os.set_inheritable(number, True)
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode, closefd=False))


def _raise_open_files_limit() -> None:
    """Raise the soft limit on open files to the hard limit, as Go servers do: each connection needs a descriptor."""
    try:
        import resource  # noqa: PLC0415 - not on every system
    except ImportError:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        # Some systems report an infinite hard limit but accept only less.
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _run(options: dict[str, Any], module: str, function: str, struct: str = "") -> int:
    """Call the function of a command with its options, or with a struct of them."""
    # Imported now: the help text needs no server and no manager.
    with uncollected_imports():
        command = import_module(f"steersman.cli.{module}")
    run: Callable[..., int] = getattr(command, function)
    return run(getattr(command, struct)(**options)) if struct else run(**options)


def _parser() -> argparse.ArgumentParser:
    parser = ConsoleParser(
        prog="steersman",
        description="Controllers for the Kubernetes API: create, run, preview and explain them; generate manifests.",
    )
    parser.add_argument("--version", action="version", version=f"steersman {__version__}")
    add_leading_options(parser)
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND", dest="command_name")
    _add_new(commands.add_parser("new", help="create a project: a kind, its operator, tests and manifests"))
    _add_demo(commands.add_parser("demo", help="watch an operator at work: no cluster, no containers"))
    _add_run(commands.add_parser("run", help="run the manager of a Python module, or a service of an application once"))
    _add_plan(commands.add_parser("plan", help="show what a manager would change on a cluster; writes nothing"))
    _add_explain(commands.add_parser("explain", help="ask a running manager why and when it reconciles an object"))
    _add_draw(commands.add_parser("draw", help="draw state machines, optionally with the state of an object"))
    _add_serve(commands.add_parser("serve", help="serve a Kubernetes API on a port until it is stopped"))
    add_application_commands(commands.add_parser)
    _add_dcp(commands.add_parser("dcp", help="run processes, services and containers as objects until it is stopped"))
    _add_logs(commands.add_parser("logs", help="print the logs of services, or of an Executable or a Container"))
    generate = commands.add_parser(
        "generate", help="write models from schemas, CRDs from models, RBAC and webhooks from managers"
    )
    what = generate.add_subparsers(title="what to generate", required=True, metavar="WHAT")
    _add_models(what.add_parser("models", help="write typed Python models from CRDs or from a server's OpenAPI"))
    _add_crds(what.add_parser("crds", help="write the CustomResourceDefinitions of resource classes as YAML"))
    _add_rbac(what.add_parser("rbac", help="write the ServiceAccount, Roles and bindings that a manager needs as YAML"))
    _add_webhooks(what.add_parser("webhooks", help="write the registration of a manager's webhooks as YAML"))
    return parser


def _add_server(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kubeconfig", metavar="FILE", help="the kubeconfig to use instead of the default")
    parser.add_argument("--context", metavar="NAME", help="the context of the kubeconfig to use")


def _add_log_level(parser: argparse.ArgumentParser, default: str) -> None:
    levels = ("debug", "info", "warning", "error")
    parser.add_argument("--log-level", choices=levels, default=default, type=str.lower, help=f"default: {default}")


def _add_yaml(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", metavar="FILE", help="the file for the YAML; default: standard output")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if FILE is missing or differs")


def _add_new(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Create the project of an operator in a new directory: a kind, its operator, tests with their own Kubernetes "
        "API, and the files for a cluster and continuous integration."
    )
    parser.add_argument("name", metavar="NAME", help="the project and its directory, such as site-operator")
    parser.add_argument("--kind", metavar="KIND", help="such as Site; default: derived from the name")
    parser.add_argument(
        "--group", default="apps.example.com", metavar="GROUP", help="a domain of yours (default: %(default)s)"
    )
    parser.add_argument("--webhooks", action="store_true", help="add defaults and checks that run as webhooks")
    parser.set_defaults(command=("new", "new_project"))


def _add_demo(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Serve a Kubernetes API from this process, run an operator on it, and show its objects as they change. Delete one "
        "with your own kubectl to see it come back, and why."
    )
    parser.add_argument(
        "--port", type=port, default=0, metavar="PORT", help="the port of the API; default: any free one"
    )
    parser.set_defaults(command=("demo.command", "run_demo"))


def _add_run(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Run a service of the application in this folder once, in this terminal, or run a manager. For a service, a command "
        "after -- replaces its own. For a manager, MODULE is imported from the current directory or from installed "
        "packages; NAME in it is a Manager, or a function that takes a client and returns one. NAME can be omitted if "
        "there is only one Manager. The first SIGTERM or Ctrl-C lets running reconciles finish, the second stops "
        "immediately."
    )
    parser.add_argument("target", metavar="SERVICE | MODULE[:NAME]", help="such as web, or site_operator:manager")
    parser.add_argument("words", nargs="*", metavar="-- COMMAND", help="for a service: the command to run in its place")
    add_place(parser)
    add_terminal(parser)
    _add_server(parser)
    parser.add_argument(
        "-n", "--namespace", metavar="NAME", help="for bare names and the Lease; default: that of the context"
    )
    parser.add_argument(
        "--install-crds", action="store_true", help="first install the CRDs of the kinds that the module declares"
    )
    parser.add_argument(
        "--install", action="store_true", help="install these CRDs, and register the manager's webhooks"
    )
    parser.add_argument(
        "--install-local",
        action="store_true",
        help="the same for an API server on this machine: it calls the webhooks on loopback, not through their Service",
    )
    parser.add_argument(
        "--replace-crds",
        action="store_true",
        help="also install CRDs that remove a version or a field of installed ones; objects lose that data",
    )
    parser.add_argument(
        "--log-format",
        choices=("auto", "text", "json"),
        default="auto",
        help="auto: text on a terminal, JSON elsewhere",
    )
    _add_log_level(parser, "info")
    parser.add_argument(
        "--port",
        type=port,
        metavar="PORT",
        help="the port for health, metrics and the debug page; overrides the module",
    )
    parser.add_argument(
        "--host",
        metavar="ADDRESS",
        help="the address of that port: use 0.0.0.0 in a Pod, for the kubelet's probes; default: loopback",
    )
    parser.add_argument(
        "--tls",
        metavar="DIRECTORY",
        help="serve that port over TLS, with tls.crt and tls.key in DIRECTORY; changes are picked up",
    )
    parser.add_argument(
        "--tls-service",
        metavar="NAMESPACE/NAME",
        help="serve that port over TLS, with certificates that the manager creates for this Service, in Secret NAME-tls",
    )
    parser.add_argument(
        "--token-review", action="store_true", help="require a token with RBAC access for metrics and the debug page"
    )
    parser.set_defaults(command=("run_target", "run_target"))


def _add_plan(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Show what a manager would change on a live cluster. It reads and watches as it does when it runs, but sends "
        "only dry runs of writes: the server applies defaults and validates, and stores nothing. Every object is "
        "reconciled from its current state: later consequences are not shown, but what the operator would wait for "
        "is. It needs the permissions of the operator. The exit code is 0 if there is nothing to change, 2 if there "
        "is, and 1 if something failed or was rejected."
    )
    parser.add_argument("target", metavar="MODULE[:NAME]", help="such as site_operator:manager")
    _add_server(parser)
    parser.add_argument(
        "-n",
        "--namespace",
        dest="namespaces",
        action="append",
        default=[],
        metavar="NAME",
        help="plan only this namespace; overrides the module; can be repeated",
    )
    parser.add_argument("--json", action="store_true", help="print the plan as JSON")
    parser.add_argument(
        "--timeout",
        dest="seconds",
        type=seconds,
        default=120.0,
        metavar="SECONDS",
        help="for the whole plan (default: %(default)g)",
    )
    _add_log_level(parser, "warning")
    parser.set_defaults(command=("plan", "plan_manager", "PlanOptions"))


def _add_serve(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Serve a Kubernetes API on a port of this machine, and print the line that configures kubectl for it. There "
        "is no cluster behind it: objects are validated, stored, watched and garbage-collected, but nothing runs. With "
        "--pods, workloads get Pods that become ready, and still no container starts. Without --data, objects are in "
        "memory and lost at the end. SIGTERM or Ctrl-C ends it."
    )
    parser.add_argument(
        "--port", type=port, default=0, metavar="PORT", help="the port, on loopback only; default: any free one"
    )
    parser.add_argument("--data", metavar="DIRECTORY", help="store objects, certificates and the kubeconfig here")
    parser.add_argument(
        "--resource",
        dest="resources",
        action="append",
        default=[],
        metavar="MODULE[:NAME]",
        help="also serve the resource classes of a module, or one of them; can be repeated",
    )
    parser.add_argument("--kubeconfig", metavar="FILE", help="write the kubeconfig to this file")
    parser.add_argument(
        "--pods",
        action="store_true",
        help="let Deployments, StatefulSets, DaemonSets and Jobs have Pods, and Pods become ready; nothing is executed",
    )
    parser.add_argument("--audit", metavar="FILE", help="append an audit event per request, as JSON lines")
    parser.add_argument(
        "--controllers",
        default="all",
        metavar="NAMES",
        help="controllers of kube-controller-manager, comma-separated, or none; default: all available",
    )
    parser.add_argument(
        "--enable-admission-plugins",
        default="",
        metavar="NAMES",
        help="admission plugins to turn on, comma-separated, such as ServiceAccount",
    )
    parser.add_argument(
        "--disable-admission-plugins",
        default="",
        metavar="NAMES",
        help="admission plugins to turn off, comma-separated",
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="show each request")
    parser.set_defaults(command=("serve", "serve_api", "ServeOptions"))


def _add_dcp(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Run the developer control plane: an API server for Executables, Services and Containers on loopback, with "
        "their controllers. The first SIGTERM or Ctrl-C deletes all objects in order, the second stops immediately."
    )
    parser.add_argument("--folder", metavar="DIRECTORY", help="keep output, state and the kubeconfig here")
    parser.add_argument("--kubeconfig", metavar="FILE", help="write the kubeconfig to this file")
    parser.add_argument("--port", type=port, default=0, metavar="PORT", help="the port; default: any free one")
    parser.add_argument("--monitor", metavar="PID[:START]", help="stop when this process ends")
    parser.add_argument(
        "--budget", type=float, default=120.0, metavar="SECONDS", help="for the deletion at the end; default: 120"
    )
    parser.add_argument("--container-runtime", choices=("podman", "docker"), default="podman", help="default: podman")
    parser.add_argument("-v", "--verbose", action="store_true", help="show what the controllers do")
    parser.set_defaults(command=("dcp", "run_dcp", "DcpOptions"))


def _add_logs(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Print the logs of the services of the application that runs in this folder. With KIND/NAME, --kubeconfig, "
        "--context, --source or --line-numbers, print the log of one Executable, Container or ContainerExec of a "
        "developer control plane."
    )
    parser.add_argument(
        "names", nargs="*", metavar="[KIND/]NAME", help="such as web or container/db; default: all services"
    )
    parser.add_argument("-f", "--follow", action="store_true", help="wait for further lines until the program ends")
    sources = ("stdout", "stderr", "startup_stdout", "startup_stderr", "system")
    parser.add_argument("--source", choices=sources, help="only for an object; default: stdout")
    parser.add_argument("--tail", type=count, metavar="LINES", help="print only the newest LINES lines")
    parser.add_argument("-t", "--timestamps", action="store_true", help="begin each line with its time")
    parser.add_argument(
        "--line-numbers", action="store_true", help="only for an object: begin each line with its number"
    )
    add_project(parser, "the one running in this folder")
    parser.add_argument(
        "--file", dest="files", action="append", default=[], metavar="FILE", help="a file of the application"
    )
    _add_server(parser)
    parser.set_defaults(command=("logs", "print_logs", "LogsOptions"))


def _add_explain(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Ask a running manager why it last reconciled an object, how that ended, and when it reconciles it next."
    )
    parser.add_argument("kind", metavar="KIND", help="a kind, its plural or short name, or the name of a controller")
    parser.add_argument("name", metavar="NAME", help="the object's name, or namespace/name")
    parser.add_argument("-n", "--namespace", metavar="NAME", help="its namespace; default: default, or cluster-scoped")
    parser.add_argument(
        "--url", metavar="URL", default="http://127.0.0.1:8080", help="the address of the manager (%(default)s)"
    )
    parser.add_argument("--token-file", metavar="FILE", help="the token to send, for a manager with token review")
    parser.add_argument(
        "--certificate-authority", metavar="FILE", help="the certificates to trust for https; default: the system's"
    )
    parser.set_defaults(command=("explain", "explain"))


def _add_draw(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Draw the state machines of a module, as a diagram for Markdown (mermaid) or as a picture (SVG). NAME is a "
        "machine, or a Manager for all its machines; without NAME, all machines of the module are drawn. With "
        "--object, the diagram shows the conditions of an object: what is done, where it stopped, and why."
    )
    parser.add_argument("target", metavar="MODULE[:NAME]", help="such as postgres_operator:Cluster")
    parser.add_argument("--format", choices=("mermaid", "svg"), help="default: by the suffix of the file, else mermaid")
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="the file, or a directory for several; default: standard output"
    )
    parser.add_argument("--check", action="store_true", help="write nothing; fail if FILE is missing or differs")
    parser.add_argument(
        "--object", metavar="NAMESPACE/NAME", help="show the state of this object, read from the server"
    )
    _add_server(parser)
    parser.set_defaults(command=("draw", "draw_machines", "DrawOptions"))


def _add_models(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Write one Python module for each group-version in CRD files (YAML or JSON), in OpenAPI v3 documents, or on a "
        "server. From a server: every group-version that steersman.kinds does not contain, or those given with "
        "--group-version."
    )
    parser.add_argument("files", nargs="*", metavar="FILE", help="CRDs or OpenAPI v3 documents; - is standard input")
    parser.add_argument("--from-server", action="store_true", help="read the OpenAPI of the server in the kubeconfig")
    _add_server(parser)
    parser.add_argument(
        "--group-version",
        dest="group_versions",
        action="append",
        metavar="GROUP/VERSION",
        help="only this one; can be repeated",
    )
    parser.add_argument(
        "--own",
        action="store_true",
        help="the CRDs are your own: keep defaults, rules and columns, so that 'generate crds' reproduces them",
    )
    parser.add_argument(
        "--packages",
        action="store_true",
        help="write a package for each group-version of CRDs, with a module for each kind and short class names",
    )
    parser.add_argument("-o", "--output", required=True, metavar="DIRECTORY", help="the directory for the modules")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a module is missing or differs")
    parser.set_defaults(command=("generate.models", "generate_models"))


def _add_crds(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Write the CRDs of the resource classes in Python modules and packages as YAML. If a kind has several versions, "
        "also name the module of the manager that converts them, or the whole package: the CRD then has their "
        "conversion."
    )
    parser.add_argument(
        "modules",
        nargs="+",
        metavar="MODULE[:NAME]",
        help="a package, a module, one of its resource classes, or the manager that converts their versions",
    )
    parser.add_argument(
        "--service", metavar="NAMESPACE/NAME", help="the Service of the conversions; overrides the manager's own"
    )
    parser.add_argument(
        "--without-conversion",
        action="store_true",
        help="also write versions that differ and that no manager converts: another program sets spec.conversion",
    )
    _add_yaml(parser)
    parser.set_defaults(command=("generate.crds", "generate_crds"))


def _add_rbac(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Write the RBAC objects for a manager, derived from its registrations: it watches kinds, writes the objects "
        "it reconciles and their status, creates and deletes what it owns, elects a leader, and records events. Add "
        "what its reconcilers read or write beyond that with --also."
    )
    parser.add_argument("target", metavar="MODULE[:NAME]", help="such as site_operator:manager")
    parser.add_argument(
        "-n", "--namespace", metavar="NAME", help="where it runs; default: a namespace with the manager's name"
    )
    parser.add_argument(
        "--also",
        action="append",
        default=[],
        metavar="RESOURCE[.GROUP][:NAME]=VERB,...",
        help="additional permissions of reconcilers, on all objects or on one; can be repeated",
    )
    parser.add_argument(
        "--token-review",
        action="store_true",
        help="for a manager with --token-review: it reviews tokens, and others may read its metrics",
    )
    parser.add_argument(
        "--tls-service",
        metavar="NAMESPACE/NAME",
        help="for a manager with --tls-service: it writes the Secret NAME-tls",
    )
    _add_yaml(parser)
    parser.set_defaults(command=("generate.rbac", "generate_rbac"))


def _add_webhooks(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Write the webhook configurations of a manager's handlers, and the Service through which the API server calls it. "
        "The manager sets the caBundle when it runs. 'generate crds' writes the CRDs of the kinds that it converts."
    )
    parser.add_argument("target", metavar="MODULE[:NAME]", help="such as site_operator:manager")
    parser.add_argument(
        "--service", metavar="NAMESPACE/NAME", help="the Service of the webhooks; overrides the manager's own"
    )
    _add_yaml(parser)
    parser.set_defaults(command=("generate.webhooks", "generate_webhooks"))
