"""The entry point: reads the command line, runs one command, turns failures into sentences and exit codes."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence

from steersman._version import __version__
from steersman.cli.failure import Failure


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the result is the exit code of the process."""
    options = _parser().parse_args(arguments)
    run: Callable[[argparse.Namespace], int] = options.run
    try:
        code = run(options)
        sys.stdout.flush()
    except Failure as failure:
        print(f"steersman: {failure}", file=sys.stderr)
        return failure.exit_code
    except KeyboardInterrupt:
        print("steersman: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # Whoever read our output has left; the interpreter must not complain about it when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="steersman",
        description="Controllers for the Kubernetes API: begin them, run them, ask them why, and generate what they need.",
    )
    parser.add_argument("--version", action="version", version=f"steersman {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_new(commands.add_parser("new", help="write a project: a kind, its operator, tests, and all to run it"))
    _add_demo(commands.add_parser("demo", help="see an operator at work: no cluster, no containers"))
    _add_run(commands.add_parser("run", help="run the manager of a Python module until it is told to stop"))
    _add_plan(commands.add_parser("plan", help="see what a manager would change on a cluster; nothing is written"))
    _add_explain(commands.add_parser("explain", help="ask a running manager about an object: why, how, and when next"))
    _add_draw(commands.add_parser("draw", help="draw state machines, also with the state of an object on them"))
    _add_serve(commands.add_parser("serve", help="serve a Kubernetes API on a port, until it is told to stop"))
    generate = commands.add_parser("generate", help="write models from schemas, CRDs from models, RBAC from managers")
    what = generate.add_subparsers(title="what to generate", required=True, metavar="WHAT")
    _add_models(what.add_parser("models", help="write typed Python models from CRDs or from a server's OpenAPI"))
    _add_crds(what.add_parser("crds", help="write the CustomResourceDefinitions of resource classes as YAML"))
    _add_rbac(what.add_parser("rbac", help="write the ServiceAccount, Roles and bindings that a manager needs as YAML"))
    return parser


def _add_new(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Write the project of an operator into a new folder: a kind, what is made of it, tests on a Kubernetes API of their "
        "own, and what a cluster and continuous integration need."
    )
    parser.add_argument("name", metavar="NAME", help="of the project and its folder, such as site-operator")
    parser.add_argument("--kind", metavar="KIND", help="such as Site; otherwise read from the name")
    parser.add_argument(
        "--group", default="apps.example.com", metavar="GROUP", help="of the kind; a domain of yours, else %(default)s"
    )
    parser.set_defaults(run=_new)


def _add_demo(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Serve a Kubernetes API from this process, run an operator on it, and show its objects as they change. Delete one "
        "with your own kubectl, and see it come back, and why."
    )
    parser.add_argument(
        "--port", type=_port, default=0, metavar="PORT", help="where the API listens; else any free one"
    )
    parser.set_defaults(run=_demo)


def _add_run(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Run a manager. MODULE is imported from the current directory or from what is installed; NAME in it is a Manager, "
        "or a function that takes a client and returns one, and may be left out if there is only one Manager. The first "
        "SIGTERM or Ctrl-C lets what runs end, the second ends at once."
    )
    parser.add_argument("target", metavar="MODULE[:NAME]", help="such as site_operator:manager")
    parser.add_argument("--kubeconfig", metavar="FILE", help="the kubeconfig to use instead of the usual one")
    parser.add_argument("--context", metavar="NAME", help="the context of the kubeconfig to use")
    parser.add_argument(
        "-n", "--namespace", metavar="NAME", help="where bare names and the Lease are; otherwise that of the context"
    )
    parser.add_argument(
        "--install-crds",
        action="store_true",
        help="first install the CRDs of the kinds that the module itself declares",
    )
    parser.add_argument(
        "--log-format",
        choices=("auto", "text", "json"),
        default="auto",
        help="auto: text on a terminal, JSON elsewhere",
    )
    parser.add_argument(
        "--log-level",
        choices=("debug", "info", "warning", "error"),
        default="info",
        type=str.lower,
        help="info if left out",
    )
    parser.add_argument(
        "--port",
        type=_port,
        metavar="PORT",
        help="where health, metrics and the debug page are, whatever the module says",
    )
    parser.add_argument(
        "--host",
        metavar="ADDRESS",
        help="the address of that port: 0.0.0.0 in a Pod, which the kubelet asks; else this machine's own",
    )
    parser.set_defaults(run=_run)


def _add_plan(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "See what a manager would change on a live cluster. It reads and watches as it does when it runs; of writes only dry "
        "runs leave this process, so that the server sets defaults and judges, and stores nothing. Every object is looked at "
        "as it is now: what would follow later is not shown, but what the operator would wait for is. It needs the rights "
        "that the operator needs. The exit code is 0 if there is nothing to change, 2 if there is, and 1 if something was "
        "refused or failed."
    )
    parser.add_argument("target", metavar="MODULE[:NAME]", help="such as site_operator:manager")
    parser.add_argument("--kubeconfig", metavar="FILE", help="the kubeconfig to use instead of the usual one")
    parser.add_argument("--context", metavar="NAME", help="the context of the kubeconfig to use")
    parser.add_argument(
        "-n",
        "--namespace",
        action="append",
        default=[],
        metavar="NAME",
        help="look only at this namespace, whatever the module says; may be given several times",
    )
    parser.add_argument("--json", action="store_true", help="print the plan as JSON")
    parser.add_argument(
        "--timeout", type=_seconds, default=120.0, metavar="SECONDS", help="for all of it (%(default)g if left out)"
    )
    parser.add_argument(
        "--log-level",
        choices=("debug", "info", "warning", "error"),
        default="warning",
        type=str.lower,
        help="warning if left out",
    )
    parser.set_defaults(run=_plan)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r}: write a number of seconds above 0")
    return seconds


def _add_serve(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Serve a Kubernetes API on a port of this machine, and print the line that points kubectl and others to it. "
        "There is no cluster behind it: objects are stored, judged, watched and collected, and nothing runs. Without "
        "--data they are in memory and gone at the end. SIGTERM or Ctrl-C ends it."
    )
    parser.add_argument(
        "--port",
        type=_port,
        default=0,
        metavar="PORT",
        help="where it listens, on this machine alone; else any free one",
    )
    parser.add_argument("--data", metavar="FOLDER", help="keep objects, certificates and the kubeconfig here")
    parser.add_argument(
        "--resource",
        action="append",
        default=[],
        metavar="MODULE[:NAME]",
        help="serve the resource classes of a module too, or one of them; may be given several times",
    )
    parser.add_argument("--kubeconfig", metavar="FILE", help="write the kubeconfig there")
    parser.add_argument("--audit", metavar="FILE", help="append an audit event for each request, as lines of JSON")
    parser.add_argument(
        "--controllers",
        default="all",
        metavar="NAMES",
        help="of kube-controller-manager, with commas between them; or none; else all that there are",
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="show each request")
    parser.set_defaults(run=_serve)


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > _PORT_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} is no port: write a number from 0 (any free one) to {_PORT_MAX}")
    return int(text)


_PORT_MAX = 65535


def _add_explain(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Ask a running manager why an object was last reconciled, how that ended, and when it is reconciled next."
    )
    parser.add_argument("kind", metavar="KIND", help="a kind, its plural or short name, or the name of a controller")
    parser.add_argument("name", metavar="NAME", help="the object's name, or namespace/name")
    parser.add_argument("-n", "--namespace", metavar="NAME", help="its namespace; otherwise default, or none")
    parser.add_argument(
        "--url", metavar="URL", default="http://127.0.0.1:8080", help="where the manager answers (%(default)s)"
    )
    parser.set_defaults(run=_explain)


def _add_draw(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Draw the state machines of a module, as a diagram for Markdown (mermaid) or as a picture (SVG). NAME is a machine, or "
        "a Manager for all of its machines; without it, all machines of the module are drawn. With --object, the conditions of "
        "an object are shown on it: what is done, where it stopped, and why."
    )
    parser.add_argument("target", metavar="MODULE[:NAME]", help="such as postgres_operator:Cluster")
    parser.add_argument(
        "--format", choices=("mermaid", "svg"), help="otherwise what the name of the file says, or mermaid"
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="where it goes, or a folder for several; otherwise the standard output"
    )
    parser.add_argument("--check", action="store_true", help="write nothing; fail if FILE is missing or differs")
    parser.add_argument(
        "--object", metavar="NAMESPACE/NAME", help="show the state of this object, read from the server"
    )
    parser.add_argument("--kubeconfig", metavar="FILE", help="the kubeconfig to use instead of the usual one")
    parser.add_argument("--context", metavar="NAME", help="the context of the kubeconfig to use")
    parser.set_defaults(run=_draw)


def _add_models(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Write one Python module for each group-version found in CRD files (YAML or JSON), in OpenAPI v3 documents, or on "
        "a server. From a server: every group-version that steersman.kinds does not have already, unless "
        "--group-version says otherwise."
    )
    parser.add_argument(
        "files", nargs="*", metavar="FILE", help="CRDs or OpenAPI v3 documents; - is the standard input"
    )
    parser.add_argument("--from-server", action="store_true", help="read the OpenAPI of the server in the kubeconfig")
    parser.add_argument("--kubeconfig", metavar="FILE", help="the kubeconfig to use instead of the usual one")
    parser.add_argument("--context", metavar="NAME", help="the context of the kubeconfig to use")
    parser.add_argument(
        "--group-version", action="append", metavar="GROUP/VERSION", help="only this one; may be given several times"
    )
    parser.add_argument(
        "--own",
        action="store_true",
        help="the CRDs are your own: keep defaults, rules and columns, so that 'generate crds' gives them back",
    )
    parser.add_argument("-o", "--output", required=True, metavar="DIRECTORY", help="where the modules go")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a module is missing or differs")
    parser.set_defaults(run=_models)


def _add_crds(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Write the CRDs of the resource classes in Python modules, and in all modules of packages, as YAML."
    )
    parser.add_argument(
        "modules",
        nargs="+",
        metavar="MODULE[:NAME]",
        help="a module or package with resource classes, or one class of it",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="where the YAML goes; otherwise the standard output")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if FILE is missing or differs")
    parser.set_defaults(run=_crds)


def _add_rbac(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Write what a manager needs of RBAC, read from what it registers: it watches kinds, writes what it reconciles "
        "and its status, makes and deletes what it owns, elects a leader, and tells events. What its reconcilers read or "
        "write beyond that, say with --also."
    )
    parser.add_argument("target", metavar="MODULE[:NAME]", help="such as site_operator:manager")
    parser.add_argument(
        "-n", "--namespace", metavar="NAME", help="where it runs; otherwise a namespace of the manager's name"
    )
    parser.add_argument(
        "--also",
        action="append",
        default=[],
        metavar="RESOURCE[.GROUP]=VERB,...",
        help="what reconcilers need beside that; may be given several times",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="where the YAML goes; otherwise the standard output")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if FILE is missing or differs")
    parser.set_defaults(run=_rbac)


def _new(options: argparse.Namespace) -> int:
    from steersman.cli.new import new_project  # noqa: PLC0415 - the help text needs no project

    return new_project(options.name, kind=options.kind, group=options.group)


def _demo(options: argparse.Namespace) -> int:
    from steersman.cli.demo import run_demo  # noqa: PLC0415 - the help text needs no server

    return run_demo(port=options.port)


def _run(options: argparse.Namespace) -> int:
    from steersman.cli.run import RunOptions, run_manager  # noqa: PLC0415 - the help text needs no manager

    return run_manager(
        RunOptions(
            target=options.target,
            kubeconfig=options.kubeconfig,
            context=options.context,
            namespace=options.namespace,
            install_crds=options.install_crds,
            log_format=options.log_format,
            log_level=options.log_level,
            port=options.port,
            host=options.host,
        )
    )


def _plan(options: argparse.Namespace) -> int:
    from steersman.cli.plan import PlanOptions, plan_manager  # noqa: PLC0415 - the help text needs no manager

    return plan_manager(
        PlanOptions(
            target=options.target,
            kubeconfig=options.kubeconfig,
            context=options.context,
            namespaces=tuple(options.namespace),
            json=options.json,
            seconds=options.timeout,
            log_level=options.log_level,
        )
    )


def _serve(options: argparse.Namespace) -> int:
    from steersman.cli.serve import ServeOptions, serve_api  # noqa: PLC0415 - the help text needs no server

    return serve_api(
        ServeOptions(
            port=options.port,
            data=options.data,
            kubeconfig=options.kubeconfig,
            resources=tuple(options.resource),
            audit=options.audit,
            controllers=options.controllers,
            verbose=options.verbose,
        )
    )


def _explain(options: argparse.Namespace) -> int:
    from steersman.cli.explain import explain  # noqa: PLC0415 - the help text needs no client

    return explain(options.kind, options.name, namespace=options.namespace, url=options.url)


def _draw(options: argparse.Namespace) -> int:
    from steersman.cli.draw import DrawOptions, draw_machines  # noqa: PLC0415 - the help text needs no machine

    return draw_machines(
        DrawOptions(
            target=options.target,
            format=options.format,
            output=options.output,
            check=options.check,
            object=options.object,
            kubeconfig=options.kubeconfig,
            context=options.context,
        )
    )


def _models(options: argparse.Namespace) -> int:
    from steersman.cli.models import generate_models  # noqa: PLC0415 - the help text needs no generator

    return generate_models(
        options.files,
        output=options.output,
        from_server=options.from_server,
        kubeconfig=options.kubeconfig,
        context=options.context,
        group_versions=options.group_version,
        own=options.own,
        check=options.check,
    )


def _crds(options: argparse.Namespace) -> int:
    from steersman.cli.crds import generate_crds  # noqa: PLC0415 - the help text needs no generator

    return generate_crds(options.modules, output=options.output, check=options.check)


def _rbac(options: argparse.Namespace) -> int:
    from steersman.cli.rbac import generate_rbac  # noqa: PLC0415 - the help text needs no manager

    return generate_rbac(
        options.target,
        namespace=options.namespace,
        also=options.also,
        output=options.output,
        check=options.check,
    )
