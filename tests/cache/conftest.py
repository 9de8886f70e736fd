"""Ways to wait for what a handler was told."""

import asyncio

import pytest


class Heard:
    """A handler that remembers, and lets a test wait for something to be said."""

    def __init__(self):
        self.notifications = []
        self._news = asyncio.Event()

    def __call__(self, notification):
        self.notifications.append(notification)
        self._news.set()

    async def until(self, condition, *, within=30.0):
        """Wait until a notification meets a condition; it and everything before it."""
        async with asyncio.timeout(within):
            seen = 0
            while True:
                for position in range(seen, len(self.notifications)):
                    if condition(self.notifications[position]):
                        return self.notifications[: position + 1]
                seen = len(self.notifications)
                self._news.clear()
                await self._news.wait()

    def of(self, name):
        """What was said of one name."""
        return [each for each in self.notifications if each.key.name == name]


@pytest.fixture
def heard():
    return Heard()
