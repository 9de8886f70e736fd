from __future__ import annotations

import asyncio

import pytest

from steersman import aio
from steersman.aio import Channel, ChannelClosed, ChannelFull, ChannelStatistics, Supervisor


async def _settle() -> None:
    """Let every task run until it waits."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_items_arrive_in_order_and_iteration_ends_with_close() -> None:
    """A receiver gets everything that was sent before the close, in order."""
    channel: Channel[int] = Channel(2)

    async def produce() -> None:
        for number in range(10):
            await channel.send(number)
        channel.close()

    async with Supervisor() as tasks:
        tasks.start(produce(), name="produce")
        assert [number async for number in channel] == list(range(10))


async def test_a_full_channel_makes_the_sender_wait() -> None:
    """No more than the capacity is ever held."""
    channel: Channel[int] = Channel(2)
    async with Supervisor() as tasks:
        for number in range(5):
            tasks.start(channel.send(number), name=f"send {number}")
        await _settle()
        assert channel.statistics() == ChannelStatistics(
            capacity=2, buffered=2, senders_waiting=3, receivers_waiting=0, closed=False
        )
        assert [await channel.receive() for _ in range(5)] == [0, 1, 2, 3, 4]
    assert channel.statistics().buffered == 0


async def test_send_nowait_refuses_when_full_and_never_overtakes() -> None:
    """A place freed for a waiting sender is not given to a newcomer."""
    channel: Channel[str] = Channel(1)
    channel.send_nowait("first")
    with pytest.raises(ChannelFull):
        channel.send_nowait("second")
    async with Supervisor() as tasks:
        tasks.start(channel.send("second"), name="send")
        await _settle()
        assert await channel.receive() == "first"
        with pytest.raises(ChannelFull):
            channel.send_nowait("third")
        assert await channel.receive() == "second"


async def test_receive_nowait_never_overtakes_a_waiting_receiver() -> None:
    """A receiver that looks without waiting would otherwise take the item of one that waited."""
    channel: Channel[int] = Channel(2)
    assert channel.receive_nowait() is None
    async with Supervisor() as tasks:
        waiting = tasks.start(channel.receive(), name="receive")
        await _settle()
        channel.send_nowait(1)
        channel.send_nowait(2)
        assert channel.receive_nowait() is None
        assert await waiting == 1
        assert channel.receive_nowait() == 2


async def test_receive_nowait_makes_room_and_ends_with_the_channel() -> None:
    """Without the notice, a sender would wait forever for room."""
    channel: Channel[int] = Channel(1)
    channel.send_nowait(1)
    async with Supervisor() as tasks:
        sender = tasks.start(channel.send(2), name="send")
        await _settle()
        assert channel.receive_nowait() == 1
        await sender
    channel.close()
    assert channel.receive_nowait() == 2
    with pytest.raises(ChannelClosed):
        channel.receive_nowait()


async def test_receivers_are_served_in_the_order_they_came() -> None:
    """The first to wait gets the first item, and a newcomer does not take it away."""
    channel: Channel[int] = Channel(4)
    got: list[tuple[str, int]] = []

    async def take(name: str) -> None:
        got.append((name, await channel.receive()))

    async with Supervisor() as tasks:
        tasks.start(take("a"), name="a")
        tasks.start(take("b"), name="b")
        await _settle()
        assert channel.statistics().receivers_waiting == 2
        channel.send_nowait(1)
        channel.send_nowait(2)
        channel.send_nowait(3)
        await take("c")
    assert sorted(got) == [("a", 1), ("b", 2), ("c", 3)]


async def test_a_cancelled_receiver_loses_no_item() -> None:
    """An item promised to a receiver that is cancelled before it runs goes to the next one."""
    channel: Channel[int] = Channel(4)
    async with Supervisor() as tasks:
        first = tasks.start(channel.receive(), name="first")
        second = tasks.start(channel.receive(), name="second")
        await _settle()
        channel.send_nowait(1)
        first.cancel()
        assert await second == 1
    assert first.cancelled()
    assert channel.statistics().buffered == 0


async def test_a_cancelled_sender_leaves_nothing_and_its_place_is_used() -> None:
    """Whether it was still waiting or already had its place, a cancelled sender sends nothing."""
    channel: Channel[int] = Channel(1)
    channel.send_nowait(0)
    async with Supervisor() as tasks:
        senders = [tasks.start(channel.send(number), name=f"send {number}") for number in (1, 2, 3)]
        await _settle()
        senders[0].cancel()
        assert await channel.receive() == 0
        senders[1].cancel()
        assert await channel.receive() == 3
    assert channel.statistics().buffered == 0
    assert [task.cancelled() for task in senders] == [True, True, False]


async def test_a_closed_coroutine_wakes_no_task() -> None:
    """The garbage collector closes one that waits on an unreachable channel: its task must not run again."""
    channel: Channel[int] = Channel(1)
    await channel.send(0)
    first, second = (channel.send(number) for number in (1, 2))
    turns = [each.send(None) for each in (first, second)]
    for coroutine in (second, first):
        coroutine.close()
    assert not any(turn.done() for turn in turns)
    assert channel.receive_nowait() == 0
    waiting = channel.receive()
    turn = waiting.send(None)
    waiting.close()
    assert not turn.done()
    channel.send_nowait(3)
    assert channel.statistics() == ChannelStatistics(
        capacity=1, buffered=1, senders_waiting=0, receivers_waiting=0, closed=False
    )


async def test_close_wakes_everyone() -> None:
    """Waiting senders and receivers fail at once; what was already sent stays receivable."""
    full: Channel[int] = Channel(1)
    full.send_nowait(1)
    empty: Channel[int] = Channel(1)
    outcomes: list[str] = []

    async def expect_closed(name: str, work) -> None:
        with pytest.raises(ChannelClosed):
            await work
        outcomes.append(name)

    async with Supervisor() as tasks:
        tasks.start(expect_closed("send", full.send(2)), name="send")
        tasks.start(expect_closed("receive", empty.receive()), name="receive")
        await _settle()
        full.close()
        empty.close()
    assert sorted(outcomes) == ["receive", "send"]
    with pytest.raises(ChannelClosed):
        full.send_nowait(3)
    with pytest.raises(ChannelClosed):
        await full.send(3)
    assert await full.receive() == 1
    with pytest.raises(ChannelClosed):
        await full.receive()
    assert full.closed


async def test_after_close_a_newcomer_does_not_take_a_promised_item() -> None:
    """The receiver that waited gets the last item, and the newcomer learns that the channel ended."""
    channel: Channel[int] = Channel(1)
    async with Supervisor() as tasks:
        waiting = tasks.start(channel.receive(), name="waiting")
        await _settle()
        channel.send_nowait(1)
        channel.close()
        with pytest.raises(ChannelClosed):
            await channel.receive()
        assert await waiting == 1


async def test_a_channel_needs_room() -> None:
    """A capacity below one is a mistake."""
    with pytest.raises(ValueError, match="at least 1"):
        Channel(0)


class _Traffic:
    """Senders and receivers that sleep, time out and hurry by chance."""

    def __init__(self) -> None:
        self.rng = aio.randomness()
        self.channel: Channel[tuple[int, int]] = Channel(3)
        self.sent: list[tuple[int, int]] = []
        self.received: list[tuple[int, int]] = []

    async def produce(self, sender: int) -> None:
        for number in range(50):
            await asyncio.sleep(self.rng.choice((0, 0, 0.1)))
            try:
                async with asyncio.timeout(self.rng.choice((0.05, 0.2, None))):
                    await self.channel.send((sender, number))
            except TimeoutError:
                continue
            self.sent.append((sender, number))

    async def consume(self) -> None:
        while True:
            await asyncio.sleep(self.rng.choice((0, 0.1)))
            try:
                async with asyncio.timeout(self.rng.choice((0, 0.05, None))):
                    self.received.append(await self.channel.receive())
            except TimeoutError:
                continue
            except ChannelClosed:
                return

    async def run(self) -> None:
        async with Supervisor() as consumers:
            for number in range(3):
                consumers.start(self.consume(), name=f"consumer {number}")
            async with Supervisor() as producers:
                for number in range(4):
                    producers.start(self.produce(number), name=f"producer {number}")
            self.channel.close()


@pytest.mark.parametrize("seed", range(20))
def test_any_mix_of_traffic_and_cancellation_keeps_every_item(run_virtual, seed) -> None:
    """What was sent is received exactly once, in order for each sender, and the same seed repeats the run."""

    async def run() -> _Traffic:
        traffic = _Traffic()
        await traffic.run()
        return traffic

    traffic = run_virtual(run(), seed=seed)
    assert sorted(traffic.received) == sorted(traffic.sent)
    for sender in range(4):
        mine = [number for owner, number in traffic.received if owner == sender]
        assert mine == sorted(mine)
    assert traffic.channel.statistics() == ChannelStatistics(
        capacity=3, buffered=0, senders_waiting=0, receivers_waiting=0, closed=True
    )
    assert run_virtual(run(), seed=seed).received == traffic.received
