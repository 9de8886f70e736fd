"""The debug page, as pure functions of statistics: `overview` of a manager, `explanation` of one key."""

from steersman.debug.page.manager_page import explanation as explanation, overview as overview
from steersman.debug.page.problems import problems_of as problems_of
