"""The commands that serve an API."""

from __future__ import annotations

import argparse

from steersman.cli.parsers import commands
from steersman.cli.parsers.arguments import AddCommand, set_command
from steersman.cli.parsers.numbers import port


def add_server_commands(add: AddCommand) -> None:
    """Add the commands that serve an API."""
    _add_serve(add("serve", help="serve a Kubernetes API on a port until it is stopped"))
    _add_dcp(add("dcp", help="run processes, services and containers as objects until it is stopped"))


def _add_serve(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Serve a Kubernetes API on a port of this machine, and print the line that configures kubectl for it. There "
        "is no cluster behind it: objects are validated, stored, watched and garbage-collected, but nothing runs. With "
        "--pods, workloads get Pods that become ready, and still no container starts. Without --data, objects are in "
        "memory and lost at the end. SIGTERM or Ctrl-C ends it."
    )
    parser.add_argument("--port", type=port, default=0, metavar="PORT", help="the port; default: any free one")
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="HOST",
        help="the address of that port: use 0.0.0.0 in a container, for its published port; default: loopback",
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
    set_command(parser, lambda options: commands.serve_api(commands.ServeOptions(**options)))


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
    set_command(parser, lambda options: commands.run_dcp(commands.DcpOptions(**options)))
