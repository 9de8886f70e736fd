"""The commands that create, run, preview and explain operators."""

from __future__ import annotations

import argparse

from steersman.cli.parsers import commands
from steersman.cli.parsers.arguments import (
    AddCommand,
    add_log_level,
    add_place,
    add_server,
    add_terminal,
    set_command,
)
from steersman.cli.parsers.numbers import count, port, rate, seconds


def add_operator_commands(add: AddCommand) -> None:
    """Add the commands that create, run, preview and explain operators."""
    _add_new(add("new", help="create a project: a kind, its operator, tests and manifests"))
    _add_demo(add("demo", help="watch an operator at work: no cluster, no containers"))
    _add_run(add("run", help="run the manager of a Python module, or a service of an application once"))
    _add_plan(add("plan", help="show what a manager would change on a cluster; writes nothing"))
    _add_simulate(add("simulate", help="try every fault at every request of an operator; no cluster"))
    _add_explain(add("explain", help="ask a running manager why and when it reconciles an object"))
    _add_migrate(add("migrate", help="rewrite the stored objects of a kind in its storage version"))
    _add_draw(add("draw", help="draw state machines, optionally with the state of an object"))


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
    parser.add_argument("--chart", action="store_true", help="add a Helm chart")
    set_command(parser, lambda options: commands.new_project(**options))


def _add_demo(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Serve a Kubernetes API from this process, run an operator on it, and show its objects as they change. Delete one "
        "with your own kubectl to see it come back, and why."
    )
    parser.add_argument(
        "--port", type=port, default=0, metavar="PORT", help="the port of the API; default: any free one"
    )
    set_command(parser, lambda options: commands.run_demo(**options))


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
    add_server(parser)
    parser.add_argument(
        "-n", "--namespace", metavar="NAME", help="for bare names and the Lease; default: that of the context"
    )
    _add_installation(parser)
    parser.add_argument(
        "--log-format",
        choices=("auto", "text", "json"),
        default="auto",
        help="auto: text on a terminal, JSON elsewhere",
    )
    add_log_level(parser, "info")
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
    set_command(parser, lambda options: commands.run_target(**options))


def _add_installation(parser: argparse.ArgumentParser) -> None:
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
        "--webhook-url",
        metavar="https://HOST:PORT",
        help="register the webhooks at this address of this machine, for an API server that can reach it, until the end",
    )
    parser.add_argument(
        "--webhook-host",
        metavar="ADDRESS",
        help="listen at ADDRESS for --webhook-url; default: its host if this machine has it, and loopback otherwise",
    )
    parser.add_argument(
        "--webhook-service",
        metavar="NAMESPACE/NAME",
        help="the Service of the webhooks; overrides the module, for a manager that is installed in another namespace",
    )
    parser.add_argument(
        "--replace-crds",
        action="store_true",
        help="also install CRDs that remove a version or a field of installed ones; objects lose that data",
    )


def _add_plan(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Show what a manager would change on a live cluster. It reads and watches as it does when it runs, but sends "
        "only dry runs of writes: the server applies defaults and validates, and stores nothing. Every object is "
        "reconciled from its current state: later consequences are not shown, but what the operator would wait for "
        "is. It needs the permissions of the operator. The exit code is 0 if there is nothing to change, 2 if there "
        "is, and 1 if something failed or was rejected."
    )
    parser.add_argument("target", metavar="MODULE[:NAME]", help="such as site_operator:manager")
    add_server(parser)
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
    add_log_level(parser, "warning")
    set_command(parser, lambda options: commands.plan_manager(commands.PlanOptions(**options)))


def _add_simulate(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Run an operator, a Kubernetes API and its users in one process under a virtual clock, with every fault at every "
        "request: crashes, lost replies, conflicts, stale caches. MODULE has scenarios, or one Manager, whose users are "
        "then derived from its kinds. The exit code is 1 if a fault breaks something. Each schedule that fails is kept in "
        "a file that replays it."
    )
    parser.add_argument("target", metavar="MODULE[:SCENARIO]", help="such as shop.operator; default: all its scenarios")
    parser.add_argument(
        "--seed", type=count, default=1, metavar="NUMBER", help="chooses delays and samples (default: %(default)s)"
    )
    parser.add_argument("--jobs", type=count, metavar="NUMBER", help="processes at a time; default: one for each core")
    parser.add_argument("--pairs", type=count, default=0, metavar="NUMBER", help="also try so many pairs of faults")
    parser.add_argument(
        "--random", type=count, default=0, metavar="NUMBER", help="also try so many schedules of one to four faults"
    )
    parser.add_argument(
        "--faults",
        default="",
        metavar="KIND,...",
        help="only these, such as crash-after-reply,lost-reply; default: all",
    )
    parser.add_argument("--replay", metavar="FILE", help="run the schedule in FILE alone, and tell its story")
    parser.add_argument(
        "--keep", default="regressions", metavar="FOLDER", help="for schedules that fail (default: %(default)s)"
    )
    parser.add_argument("--page", metavar="FILE", help="write the stories and the coverage as an HTML page")
    set_command(parser, lambda options: commands.simulate_operator(commands.SimulateOptions(**options)))


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
    set_command(parser, lambda options: commands.explain(**options))


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
    add_server(parser)
    set_command(parser, lambda options: commands.draw_machines(commands.DrawOptions(**options)))


def _add_migrate(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Rewrite all objects of a custom resource, so that the server stores them in the storage version, then take the "
        "other versions off status.storedVersions. The server does it if it has StorageVersionMigration, otherwise this "
        "command does. A killed run can be repeated: it goes on where it stopped."
    )
    parser.add_argument("kind", metavar="KIND", help="the definition, such as sites.example.com")
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="write nothing: count the objects, and show which the server would refuse",
    )
    parser.add_argument(
        "--by-client", action="store_true", help="rewrite the objects from here, also if the server could do it"
    )
    parser.add_argument(
        "--rate", type=rate, default=200.0, metavar="N", help="the most objects in a second (default: %(default)g)"
    )
    add_server(parser)
    set_command(parser, lambda options: commands.migrate(commands.MigrateOptions(**options)))
