"""The commands that generate code and manifests."""

from __future__ import annotations

import argparse

from steersman.cli.parsers import commands
from steersman.cli.parsers.arguments import AddCommand, add_server, set_command


def add_generate_commands(add: AddCommand) -> None:
    """Add the commands below ``steersman generate``."""
    _add_models(add("models", help="write typed Python models from CRDs or from a server's OpenAPI"))
    _add_crds(add("crds", help="write the CustomResourceDefinitions of resource classes as YAML"))
    _add_rbac(add("rbac", help="write the ServiceAccount, Roles and bindings that a manager needs as YAML"))
    _add_webhooks(add("webhooks", help="write the registration of a manager's webhooks as YAML"))
    _add_reference(add("reference", help="write a Markdown page for each kind of resource classes"))
    _add_chart(add("chart", help="write a Helm chart with everything that a manager needs in a cluster"))


def _add_yaml(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", metavar="FILE", help="the file for the YAML; default: standard output")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if FILE is missing or differs")


def _add_models(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Write one Python module for each group-version in CRD files (YAML or JSON), in OpenAPI v3 documents, or on a "
        "server. From a server: every group-version that steersman.kinds does not contain, or those given with "
        "--group-version."
    )
    parser.add_argument("files", nargs="*", metavar="FILE", help="CRDs or OpenAPI v3 documents; - is standard input")
    parser.add_argument("--from-server", action="store_true", help="read the OpenAPI of the server in the kubeconfig")
    add_server(parser)
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
    set_command(parser, lambda options: commands.generate_models(**options))


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
    parser.add_argument(
        "--compatible-with",
        metavar="OLD",
        help="print which changes since OLD break stored objects or clients, and fail if one does; OLD is file:PATH, "
        "git:REVISION[:PATH] (default: the file of -o) or cluster[:CONTEXT]",
    )
    _add_yaml(parser)
    set_command(parser, lambda options: commands.generate_crds(**options))


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
    _add_also(parser)
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
    set_command(parser, lambda options: commands.generate_rbac(**options))


def _add_also(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--also",
        action="append",
        default=[],
        metavar="RESOURCE[.GROUP][:NAME]=VERB,...",
        help="additional permissions of reconcilers, on all objects or on one; can be repeated",
    )


def _add_chart(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Write a Helm chart of a manager: the CRDs of its kinds, RBAC, the Deployment, its webhooks, the Service of its "
        "metrics, a network policy, and values with a JSON schema. The image starts with 'steersman run MODULE'; the chart "
        "adds the arguments. helm never upgrades CRDs: the chart refuses a release whose CRDs are not installed yet."
    )
    parser.add_argument("target", metavar="MODULE[:NAME]", help="such as site_operator:manager")
    parser.add_argument("-d", "--directory", required=True, metavar="DIRECTORY", help="the directory of the chart")
    parser.add_argument("--image", metavar="IMAGE", help="the default image; default: the manager's name with :dev")
    parser.add_argument("--version", default="0.1.0", metavar="VERSION", help="of chart and operator (%(default)s)")
    _add_also(parser)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file is missing or differs")
    set_command(parser, lambda options: commands.generate_chart(**options))


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
    set_command(parser, lambda options: commands.generate_webhooks(**options))


def _add_reference(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Write a Markdown page for each kind of the resource classes in Python modules and packages: an example, fields, "
        "types, defaults, constraints, and the conditions that the managers there report."
    )
    parser.add_argument(
        "modules",
        nargs="+",
        metavar="MODULE[:NAME]",
        help="a package, a module, one of its resource classes, or the manager that reports their conditions",
    )
    parser.add_argument("-o", "--output", metavar="FOLDER", help="the folder for the pages; default: standard output")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a page is missing or differs")
    set_command(parser, lambda options: commands.generate_reference(**options))
