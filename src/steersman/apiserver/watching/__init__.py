"""Watching: one feed of the store's changes, kept for a while per resource, and read by any number of watchers."""

from steersman.apiserver.watching.feed import Feed as Feed
from steersman.apiserver.watching.selection import Selection as Selection
from steersman.apiserver.watching.watched_change import WatchedChange as WatchedChange
from steersman.apiserver.watching.window import TooOld as TooOld, Window as Window
