"""The pytest plugin of runs with several workers (``pytest -n 2``): `samples.scheduling` divides the tests.

The process that schedules collects no tests, so the workers write down which tests are marked `alone`.
It also writes the summary, so the workers hand it the lines that their fixtures add with `summarize`.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import pytest

_NOTES = pytest.StashKey[Path]()
_SUMMARY = pytest.StashKey[list[str]]()


#: The variable with the folder that all workers of a run share, and that ends with the run.
SHARED = "STEERSMAN_SHARED_BY_WORKERS"


def summarize(config: pytest.Config, line: str) -> None:
    """Add a line to the summary of the run."""
    config.stash.setdefault(_SUMMARY, []).append(line)


def pytest_configure(config: pytest.Config) -> None:
    if (notes := getattr(config, "workerinput", {}).get("notes")) is not None:
        os.environ[SHARED] = str(Path(notes).parent)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node) -> None:
    node.workerinput["notes"] = str(_notes(node.config))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log):
    from samples.scheduling import Scheduling  # only a run with workers needs xdist

    return Scheduling(config, log, _notes(config))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    # before xdist's own hook, which reports the collection to the scheduler
    notes = getattr(session.config, "workerinput", {}).get("notes")
    if notes is not None:
        alone = [item.nodeid for item in session.items if item.get_closest_marker("alone") is not None]
        draft = Path(f"{notes}.{os.getpid()}")
        draft.write_text(json.dumps(alone), encoding="utf-8")
        draft.replace(notes)


def pytest_sessionfinish(session: pytest.Session) -> None:
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["summary"] = session.config.stash.get(_SUMMARY, [])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node) -> None:
    # a worker that crashed leaves nothing
    for line in getattr(node, "workeroutput", {}).get("summary", []):
        summarize(node.config, line)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for line in config.stash.get(_SUMMARY, []):
        terminalreporter.write_line(line)


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable(report):
    """Spell out lone surrogates, which a test may log: a worker that cannot send its report ends."""
    return _sendable((yield))


def _sendable(value):
    match value:
        case str():
            return value.encode("utf-8", "backslashreplace").decode()
        case dict():
            return {_sendable(key): _sendable(each) for key, each in value.items()}
        case list() | tuple():
            return type(value)(_sendable(each) for each in value)
        case _:
            return value


def _notes(config: pytest.Config) -> Path:
    if _NOTES not in config.stash:
        folder = tempfile.TemporaryDirectory(prefix="steersman-workers-")
        config.add_cleanup(folder.cleanup)
        config.stash[_NOTES] = Path(folder.name) / "alone.json"
    return config.stash[_NOTES]
