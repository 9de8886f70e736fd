"""Watching: one feed of the store's changes, kept for a while per resource, and read by any number of watchers."""

from steersman.apiserver.watching.event import Event
from steersman.apiserver.watching.feed import Feed
from steersman.apiserver.watching.selection import Selection
from steersman.apiserver.watching.window import TooOld, Window

__all__ = ["Event", "Feed", "Selection", "TooOld", "Window"]
