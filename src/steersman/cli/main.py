"""The entry point: parses the command line, runs one command, and turns failures into messages and exit codes."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Sequence

from steersman._version import __version__
from steersman.cli.console import ConsoleParser, take_over_reports, tell_failure
from steersman.cli.failure import Failure
from steersman.cli.parsers.applications import add_application_commands
from steersman.cli.parsers.arguments import Command
from steersman.cli.parsers.generators import add_generate_commands
from steersman.cli.parsers.operators import add_operator_commands
from steersman.cli.parsers.servers import add_server_commands
from steersman.cli.up.leading_options import add_leading_options, merge_leading_options


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code of the process."""
    if arguments is None:
        _open_standard_streams()
        take_over_reports()
    options = vars(_parser().parse_args(arguments))
    _raise_open_files_limit()
    try:
        options = merge_leading_options(options, options.pop("command_name"))
        command: Command = options.pop("command")
        code = command(options)
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


def _parser() -> argparse.ArgumentParser:
    parser = ConsoleParser(
        prog="steersman",
        description="Controllers for the Kubernetes API: create, run, preview and explain them; generate manifests.",
    )
    parser.add_argument("--version", action="version", version=f"steersman {__version__}")
    add_leading_options(parser)
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND", dest="command_name")
    add_operator_commands(commands.add_parser)
    add_server_commands(commands.add_parser)
    add_application_commands(commands.add_parser)
    generate = commands.add_parser(
        "generate", help="write models from schemas, CRDs from models, RBAC and webhooks from managers"
    )
    what = generate.add_subparsers(title="what to generate", required=True, metavar="WHAT")
    add_generate_commands(what.add_parser)
    return parser
