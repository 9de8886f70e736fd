"""A client of the shared engine, and ways to wait for what a handler was told."""

import asyncio

import pytest

from samples.site import Site
from steersman import Client


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


@pytest.fixture
async def client(engine):
    async with Client.connect(kubeconfig=engine.kubeconfig, field_manager="tests") as client:
        yield client


@pytest.fixture(scope="session")
async def sites(engine):
    """The Site kind, installed once."""
    async with Client.connect(kubeconfig=engine.kubeconfig, field_manager="tests") as client:
        await client.install(Site)
