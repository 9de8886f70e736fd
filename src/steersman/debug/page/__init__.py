"""The debug page, as pure functions of statistics: `overview` of a manager, `explanation` of one key.

Other rooms build their pages from the same elements.
"""

from steersman.debug.page.elements import Html as Html, element as element
from steersman.debug.page.manager_page import explanation as explanation, overview as overview
from steersman.debug.page.problems import problems_of as problems_of
