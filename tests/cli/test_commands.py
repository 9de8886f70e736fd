"""The command line as a whole: what each parser gives fits its command, and help imports no command."""

from __future__ import annotations

import argparse
import inspect
import subprocess
import sys
from collections.abc import Iterator

import pytest

from steersman.cli.main import _parser
from steersman.cli.parsers import commands
from steersman.cli.run import RunOptions


def leaves(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """The parsers of all commands."""
    below = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
    for action in below:
        for each in action.choices.values():
            yield from leaves(each)
    if not below:
        yield parser


LEAVES = {each.prog.removeprefix("steersman "): each for each in leaves(_parser())}
FUNCTIONS = [
    each for each in dir(commands) if each.islower() and not each.startswith("_") and each != "uncollected_imports"
]


def test_every_command_is_here():
    assert {"new", "run", "up", "down", "restart", "stop", "start", "logs", "serve", "dcp", "generate crds"} <= {
        *LEAVES
    }


@pytest.mark.parametrize("name", LEAVES)
def test_a_command_takes_the_options_of_its_parser(name: str, monkeypatch: pytest.MonkeyPatch):
    """Otherwise the command would fail with a TypeError only when a user types it."""
    called = []
    for function in FUNCTIONS:
        takes = inspect.signature(getattr(commands, function))

        def check(*args, takes=takes, function=function, **options):
            takes.bind(*args, **options)
            called.append(function)
            return 0

        monkeypatch.setattr(commands, function, check)
    parser = LEAVES[name]
    options = {each.dest: each.default for each in parser._actions if each.dest != "help"}
    defaults = {key: value for key, value in parser._defaults.items() if key != "command"}
    assert parser.get_default("command")({**options, **defaults}) == 0
    assert len(called) == 1


def test_a_manager_takes_the_options_of_run():
    """`run_target` passes on what is not for a service."""
    service = {"words", "files", "project", "terminal", "help"}
    RunOptions(**{each.dest: each.default for each in LEAVES["run"]._actions if each.dest not in service})


def test_help_imports_no_command():
    """The modules of a server take a second, and help is what a user types first."""
    program = """
import sys
from steersman.cli import main
try:
    main(["--help"])
except SystemExit:
    pass
heavy = ("aiohttp", "steersman.client", "steersman.manager", "steersman.application", "steersman.cli.plan")
print([each for each in heavy if each in sys.modules], file=sys.stderr)
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stderr == "[]\n"
    assert "start an application" in result.stdout
