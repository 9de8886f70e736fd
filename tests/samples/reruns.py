"""The pytest plugin of tests that run again (``pytest --reruns 1``).

Guarantees: a test that runs again gets new fixtures of its module, else it would meet the objects that its first run left
on a server of the module. The summary ends with the name of each test that ran again, and with why.
"""

from __future__ import annotations

from typing import Any

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: Any) -> None:
    if getattr(item, "execution_count", 1) == 1:
        return
    for definitions in item._fixtureinfo.name2fixturedefs.values():
        for each in definitions:
            if each.scope not in ("function", "package", "session"):
                each.finish(item._request)


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    caught = terminalreporter.stats.get("rerun", [])
    if caught:
        terminalreporter.section("tests that ran twice: each is a defect, unless the host stood still")
    for report in caught:
        terminalreporter.write_line(f"{report.nodeid} ({report.when}): {_reason(report)}")


def _reason(report: pytest.TestReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    message = getattr(crash, "message", None) or str(report.longrepr)
    return message.strip().partition("\n")[0]
