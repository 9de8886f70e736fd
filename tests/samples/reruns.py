"""The pytest plugin of tests that run again (``pytest --reruns 1``): they get new fixtures of their module.

Else the second run of a test would meet the objects that its first run left on a server of the module.
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
            if each.scope not in ("function", "session"):
                each.finish(item._request)
