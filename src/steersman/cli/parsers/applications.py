"""The arguments of the commands for applications."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from steersman.cli.parsers import commands
from steersman.cli.parsers.arguments import (
    AddCommand,
    add_place,
    add_project,
    add_repeated,
    add_server,
    add_terminal,
    set_command,
)
from steersman.cli.parsers.numbers import count, seconds


def add_application_commands(add: AddCommand) -> None:
    """Add the commands that start, show and change an application."""
    _add_up(add("up", help="start an application from steersman.yaml, a Compose file or a Procfile"))
    down = add("down", help="stop a running application")
    down.description = "Stop a running application, dependents before their dependencies."
    add_place(down)
    _add_timeout(down, 150.0, "how long to wait for the services to stop")
    set_command(down, lambda options: commands.run_down(commands.DownOptions(**options)))
    ps = add("ps", help="list the services of a running application")
    ps.description = "List the services of a running application: state, health, addresses and what each waits for."
    add_place(ps)
    ps.add_argument("--json", action="store_true", help="print all fields as JSON")
    ps.add_argument("-a", "--all", action="store_true", help="list all your running applications instead")
    set_command(ps, lambda options: commands.run_ps(commands.PsOptions(**options)))
    page = add("page", help="print a link to the page of a running application")
    page.description = "Print a link that opens the page of a running application once, within ten minutes."
    add_place(page)
    set_command(page, lambda options: commands.run_page(commands.PlaceOptions(**options)))
    _add_control(add, "restart", "restart services", lambda: commands.run_restart)
    _add_control(add, "stop", "stop services; their logs remain", lambda: commands.run_stop)
    _add_control(add, "start", "start services that were stopped or have ended", lambda: commands.run_start)
    scale = add("scale", help="change the number of processes of a service")
    scale.description = "Change the number of processes of services, and wait until they run."
    scale.add_argument("names", nargs="+", metavar="NAME=NUMBER", help="such as worker=3")
    add_place(scale)
    _add_timeout(scale, 60.0, "how long to wait for the processes")
    set_command(scale, lambda options: commands.run_scale(commands.ControlOptions(**options)))
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
    set_command(command, lambda options: commands.run_exec(commands.CommandOptions(**options)))
    _add_logs(add("logs", help="print the logs of services, or of an Executable or a Container"))


def _add_control(
    add: AddCommand, name: str, words: str, run: Callable[[], Callable[[commands.ControlOptions], int]]
) -> None:
    parser = add(name, help=words)
    parser.description = f"{words.capitalize()}, and wait until the state is reached. Without NAME: all services."
    parser.add_argument("names", nargs="*", metavar="NAME", help="a service")
    add_place(parser)
    _add_timeout(parser, 60.0, "how long to wait for the state")
    set_command(parser, lambda options: run()(commands.ControlOptions(**options)))


def _add_up(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Start the application that steersman.yaml, a Compose file or a Procfile in this folder or a parent folder declares, "
        "and keep it running. Services start in the order of their dependencies. When you edit the file, Steersman "
        "applies the difference. The first Ctrl-C stops the services in order, the second kills them. If the application "
        "is already running, the command applies the changes to it and follows it."
    )
    _add_selection(parser)
    words = "the number of processes of a service, such as web=2, or of all processes: all=2"
    add_repeated(parser, "-m", "--formation", "--scale", dest="scales", metavar="NAME=NUMBER", words=words)
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
    parser.set_defaults(background=False)
    set_command(parser, lambda options: commands.run_up(commands.UpOptions(**options)))


def _add_convert(parser: argparse.ArgumentParser) -> None:
    parser.description = "Print the objects that steersman up would apply."
    _add_selection(parser)
    parser.add_argument("--format", choices=("yaml", "json"), default="yaml", help="default: yaml")
    parser.add_argument("--show-secrets", action="store_true", help="also print values that look like secrets")
    set_command(parser, lambda options: commands.run_convert(commands.ConvertOptions(**options)))


def _add_selection(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="NAME", help="a service, with what it depends on; default: all")
    add_place(parser)
    add_repeated(parser, "--env-file", dest="env_files", metavar="FILE", words="variables")
    add_repeated(parser, "--profile", dest="profiles", metavar="NAME", words="also the services of this profile")


def _add_timeout(parser: argparse.ArgumentParser, default: float, words: str) -> None:
    parser.add_argument(
        "--timeout", type=seconds, default=default, metavar="SECONDS", help=f"{words} (default: {default:g})"
    )


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
    add_server(parser)
    set_command(parser, lambda options: commands.print_logs(commands.LogsOptions(**options)))
