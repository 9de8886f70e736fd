"""The arguments of the commands for applications."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from steersman.cli.number_arguments import seconds

#: Adds a parser for a command with its help.
AddCommand = Callable[..., argparse.ArgumentParser]


def add_application_commands(add: AddCommand) -> None:
    """Add the commands that start, show and change an application."""
    _add_up(add("up", help="start an application from steersman.yaml, a Compose file or a Procfile"))
    down = add("down", help="stop a running application")
    down.description = "Stop a running application, dependents before their dependencies."
    add_place(down)
    _add_timeout(down, 150.0, "how long to wait for the services to stop")
    down.set_defaults(command=("up.down", "run_down", "DownOptions"))
    ps = add("ps", help="list the services of a running application")
    ps.description = "List the services of a running application: state, health, addresses and what each waits for."
    add_place(ps)
    ps.add_argument("--json", action="store_true", help="print all fields as JSON")
    ps.add_argument("-a", "--all", action="store_true", help="list all your running applications instead")
    ps.set_defaults(command=("up.ps", "run_ps", "PsOptions"))
    page = add("page", help="print a link to the page of a running application")
    page.description = "Print a link that opens the page of a running application once, within ten minutes."
    add_place(page)
    page.set_defaults(command=("up.page", "run_page", "PlaceOptions"))
    for name, words in (
        ("restart", "restart services"),
        ("stop", "stop services; their logs remain"),
        ("start", "start services that were stopped or have ended"),
    ):
        parser = add(name, help=words)
        parser.description = f"{words.capitalize()}, and wait until the state is reached. Without NAME: all services."
        parser.add_argument("names", nargs="*", metavar="NAME", help="a service")
        add_place(parser)
        _add_timeout(parser, 60.0, "how long to wait for the state")
        parser.set_defaults(command=("up.control", f"run_{name}", "ControlOptions"))
    scale = add("scale", help="change the number of processes of a service")
    scale.description = "Change the number of processes of services, and wait until they run."
    scale.add_argument("names", nargs="+", metavar="NAME=NUMBER", help="such as worker=3")
    add_place(scale)
    _add_timeout(scale, 60.0, "how long to wait for the processes")
    scale.set_defaults(command=("up.control", "run_scale", "ControlOptions"))
    _add_convert(add("convert", help="print the objects that an application becomes"))
    command = add("exec", help="run a command with the environment of a running service")
    command.description = (
        "Run a command with the environment, the working directory and the user of a running service, or inside its "
        "container. Write the command after --. The exit code is that of the command."
    )
    command.add_argument("name", metavar="NAME", help="a service")
    command.add_argument("words", nargs="*", metavar="-- COMMAND", help="the command and its arguments")
    add_place(command)
    add_terminal(command)
    command.set_defaults(command=("up.terminal_command", "run_exec", "CommandOptions"))


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


def _add_up(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Start the application that steersman.yaml, a Compose file or a Procfile in this folder or a parent folder declares, "
        "and keep it running. Services start in the order of their dependencies. When you edit the file, Steersman "
        "applies the difference. The first Ctrl-C stops the services in order, the second kills them. If the application "
        "is already running, the command applies the changes to it and follows it."
    )
    _add_selection(parser)
    words = "the number of processes of a service, such as web=2, or of all processes: all=2"
    _add_repeated(parser, "-m", "--formation", "--scale", dest="scales", metavar="NAME=NUMBER", words=words)
    parser.add_argument(
        "-d", "--detach", action="store_true", help="run in the background; return when every service has started"
    )
    parser.add_argument("--wait", action="store_true", help="the same as --detach")
    _add_timeout(parser, 600.0, "how long to wait for the session, and with --detach for every service")
    parser.add_argument(
        "--plain", "--no-view", dest="plain", action="store_true", help="print log lines instead of the terminal view"
    )
    aborts = parser.add_mutually_exclusive_group()
    aborts.add_argument(
        "--abort-on-exit",
        "--abort-on-container-exit",
        dest="abort_on_exit",
        action="store_true",
        help="stop all services when one ends, and return its exit code",
    )
    aborts.add_argument(
        "--abort-on-failure",
        "--abort-on-container-failure",
        dest="abort_on_failure",
        action="store_true",
        help="stop all services when one fails, and return its exit code",
    )
    parser.add_argument(
        "--exit-code-from",
        default="",
        metavar="NAME",
        help="return the exit code of this service; implies --abort-on-exit",
    )
    parser.add_argument("--container-runtime", choices=("podman", "docker"), default="podman", help="default: podman")
    parser.set_defaults(background=False, command=("up.command", "run_up", "UpOptions"))


def _add_convert(parser: argparse.ArgumentParser) -> None:
    parser.description = "Print the objects that steersman up would apply."
    _add_selection(parser)
    parser.add_argument("--format", choices=("yaml", "json"), default="yaml", help="default: yaml")
    parser.add_argument("--show-secrets", action="store_true", help="also print values that look like secrets")
    parser.set_defaults(command=("up.conversion", "run_convert", "ConvertOptions"))


def _add_selection(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="NAME", help="a service, with what it depends on; default: all")
    add_place(parser)
    _add_repeated(parser, "--env-file", dest="env_files", metavar="FILE", words="variables")
    _add_repeated(parser, "--profile", dest="profiles", metavar="NAME", words="also the services of this profile")


def add_place(parser: argparse.ArgumentParser) -> None:
    """Add the options that select an application."""
    _add_repeated(parser, "-f", "--file", dest="files", metavar="FILE", words="a file to read")
    add_project(parser, "from the file or the folder")


def add_project(parser: argparse.ArgumentParser, default: str) -> None:
    """Add the option for the name of a project."""
    words = f"the name of the project; default: {default}"
    parser.add_argument("-p", "--project", "--project-name", dest="project", metavar="NAME", help=words)


def _add_repeated(parser: argparse.ArgumentParser, *flags: str, dest: str, metavar: str, words: str) -> None:
    parser.add_argument(
        *flags, dest=dest, action="append", default=[], metavar=metavar, help=f"{words}; can be repeated"
    )


def _add_timeout(parser: argparse.ArgumentParser, default: float, words: str) -> None:
    parser.add_argument(
        "--timeout", type=seconds, default=default, metavar="SECONDS", help=f"{words} (default: {default:g})"
    )
