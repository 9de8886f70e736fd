"""Branches of a run: which of them is killed because it hangs."""

from __future__ import annotations

import os
import time  # noqa: TID251 - the branches wait for real

import pytest

from steersman.simulation.exploration.branches import Branches, Message

HANGS_AFTER = 2.0


@pytest.mark.parametrize(
    ("name", "failure"),
    [
        ("endless", "the run did not end within 0.1 seconds of CPU time"),
        ("blocked", "the run did nothing for 0.1 real seconds"),
    ],
)
def test_a_branch_that_hangs_is_killed(name: str, failure: str) -> None:
    messages: list[Message] = []
    branches = Branches(1, messages.append, hangs_after=0.1)
    if branches.branch(name):
        with branches.ending():
            while True:
                time.sleep(0 if name == "endless" else 60)
    branches.finish()
    assert [message.failure for message in messages] == [failure]


def test_no_branch_is_killed_because_all_processes_were_paused() -> None:
    """After Ctrl-Z and `fg`, or on a machine that stood still, each run that was going on would be a violation."""
    reading, writing = os.pipe()
    messages: list[Message] = []

    def on_message(message: Message) -> None:
        messages.append(message)
        if message.label == "quick":
            time.sleep(HANGS_AFTER + 0.5)  # the pause
            os.write(writing, b"!")

    branches = Branches(2, on_message, hangs_after=HANGS_AFTER)
    for name in ("paused", "quick"):
        if branches.branch(name):
            with branches.ending():
                if name == "paused":
                    os.read(reading, 1)
                branches.send(name.encode())
    branches.finish()
    assert [(message.data, message.failure) for message in messages] == [(b"quick", ""), (b"paused", "")]
