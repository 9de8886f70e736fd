"""The page of an application in a browser. See `steersman.ui.page.server`."""

from steersman.ui.page.access import AccessRefused as AccessRefused
from steersman.ui.page.server import Dashboard as Dashboard, new_link as new_link
