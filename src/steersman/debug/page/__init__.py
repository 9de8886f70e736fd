"""The debug page, as pure functions of statistics: `overview` of a manager, `explanation` of one key."""

from steersman.debug.page.overview import explanation, overview
from steersman.debug.page.problems import problems

__all__ = ["explanation", "overview", "problems"]
