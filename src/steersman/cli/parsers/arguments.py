"""Arguments that several commands have, and how a parser gets its command."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

#: Adds a parser for a command with its help.
AddCommand = Callable[..., argparse.ArgumentParser]
#: Calls the function of a command with its options; returns an exit code.
Command = Callable[[dict[str, Any]], int]


def set_command(parser: argparse.ArgumentParser, command: Command) -> None:
    """Set what is called for a parser. ``command`` uses `commands`, so that help imports no module of a command."""
    parser.set_defaults(command=command)


def add_server(parser: argparse.ArgumentParser) -> None:
    """Add the options that select a server."""
    parser.add_argument("--kubeconfig", metavar="FILE", help="the kubeconfig to use instead of the default")
    parser.add_argument("--context", metavar="NAME", help="the context of the kubeconfig to use")


def add_log_level(parser: argparse.ArgumentParser, default: str) -> None:
    """Add the option for the least level of log lines."""
    levels = ("debug", "info", "warning", "error")
    parser.add_argument("--log-level", choices=levels, default=default, type=str.lower, help=f"default: {default}")


def add_terminal(parser: argparse.ArgumentParser) -> None:
    """Add the options that give a container a terminal, or none."""
    terminal = parser.add_mutually_exclusive_group()
    terminal.add_argument(
        "-T",
        "--no-tty",
        "--no-TTY",
        dest="terminal",
        action="store_false",
        default=None,
        help="give a container no terminal; by default it has one if input and output are terminals",
    )
    terminal.add_argument(
        "-t", "--tty", dest="terminal", action="store_true", default=None, help="give a container a terminal"
    )


def add_place(parser: argparse.ArgumentParser) -> None:
    """Add the options that select an application."""
    add_repeated(parser, "-f", "--file", dest="files", metavar="FILE", words="a file to read")
    add_project(parser, "from the file or the folder")


def add_project(parser: argparse.ArgumentParser, default: str) -> None:
    """Add the option for the name of a project."""
    words = f"the name of the project; default: {default}"
    parser.add_argument("-p", "--project", "--project-name", dest="project", metavar="NAME", help=words)


def add_repeated(parser: argparse.ArgumentParser, *flags: str, dest: str, metavar: str, words: str) -> None:
    """Add an option that can be repeated."""
    parser.add_argument(
        *flags, dest=dest, action="append", default=[], metavar=metavar, help=f"{words}; can be repeated"
    )
