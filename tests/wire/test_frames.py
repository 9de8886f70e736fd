"""Watch frames: split anywhere, of any size, never guessed."""

from __future__ import annotations

import time  # noqa: TID251 - CPU time is what the test is about

import msgspec
import pytest
from hypothesis import given, strategies as st

from steersman.errors import ProtocolError
from steersman.wire import FrameSplitter, WatchFrame, decode_frame, encode_frame

types = st.sampled_from(["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"])
objects = st.dictionaries(st.text(), st.text() | st.integers(-(2**53), 2**53) | st.none()).map(msgspec.json.encode)
frames = st.lists(st.builds(WatchFrame, types, objects))


@given(frames, st.data())
def test_frames_arrive_whole_however_the_stream_is_cut(sent, data):
    stream = b"".join(encode_frame(frame.type, frame.object) for frame in sent)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)))))
    splitter = FrameSplitter()
    got = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        got += splitter.feed(stream[start:end])
    got += splitter.finish()
    assert [decode_frame(frame) for frame in got] == sent


@given(st.binary(), st.integers(1, 9))
def test_garbage_is_an_error_or_nothing(noise, size):
    splitter = FrameSplitter(max_frame=64)
    for start in range(0, len(noise), size):
        try:
            for frame in splitter.feed(noise[start : start + size]):
                assert len(frame) <= 64
                decode_frame(frame)
        except ProtocolError:
            pass
        assert splitter.pending <= 64


def test_large_objects_in_small_chunks_take_linear_time():
    """Ten times the bytes may cost about ten times the work, not a hundred times."""

    def work(size: int) -> float:
        frame = encode_frame("ADDED", b'{"data":"%s"}' % (b"x" * size))
        best = float("inf")
        for _ in range(3):
            splitter = FrameSplitter()
            started = time.process_time()
            got = [f for start in range(0, len(frame), 16) for f in splitter.feed(frame[start : start + 16])]
            best = min(best, time.process_time() - started)
            assert got == [frame[:-1]]
        return best

    assert work(2_000_000) < 40 * work(200_000)


def test_a_frame_beyond_the_bound_is_refused_before_it_is_held():
    splitter = FrameSplitter(max_frame=100)
    for _ in range(10):
        splitter.feed(b"x" * 10)
    with pytest.raises(ProtocolError, match="100 bytes"):
        splitter.feed(b"x")
    assert splitter.pending == 0


@pytest.mark.parametrize("chunks", [[b"x" * 101 + b"\n"], [b"ok\n" + b"x" * 101], [b"x" * 60, b"x" * 41 + b"\n"]])
def test_the_bound_holds_in_every_position(chunks):
    splitter = FrameSplitter(max_frame=100)
    *first, last = chunks
    for chunk in first:
        splitter.feed(chunk)
    with pytest.raises(ProtocolError, match="100 bytes"):
        splitter.feed(last)


def test_many_frames_in_a_chunk_larger_than_the_bound_are_fine():
    splitter = FrameSplitter(max_frame=10)
    assert splitter.feed(b"12345\n" * 100 + b"1") == [b"12345"] * 100


def test_blank_lines_are_no_frames():
    splitter = FrameSplitter()
    assert splitter.feed(b"\n\r\n{}\n \n") == [b"{}"]
    assert splitter.finish() == []


def test_a_stream_cut_inside_a_frame_is_an_error():
    """A half object must never be taken for an event."""
    splitter = FrameSplitter()
    splitter.feed(b'{"type":"ADDED","object":{"a":')
    with pytest.raises(ProtocolError, match="inside a frame"):
        splitter.finish()


def test_a_last_frame_may_lack_its_newline():
    splitter = FrameSplitter()
    assert splitter.feed(b'{"type":"ADDED","object":{}}') == []
    assert splitter.finish() == [b'{"type":"ADDED","object":{}}']


@pytest.mark.parametrize(
    "frame",
    [
        b"<html>",
        b"[]",
        b"{}",
        b'{"type":"ADDED"}',
        b'{"object":{}}',
        b'{"type":1,"object":{}}',
        b'{"type":"UPSERTED","object":{}}',
        b'{"type":"added","object":{}}',
        b'{"type":"\xff","object":{}}',
        b'{"type":"ADDED","object":{}}{"type":"ADDED","object":{}}',
        b'{"type":"ADDED","object":' + b"[" * 100_000,
    ],
)
def test_what_is_no_event_is_a_protocol_error(frame):
    with pytest.raises(ProtocolError):
        decode_frame(frame)


def test_an_error_about_a_frame_does_not_show_it():
    """Frames of a watch on Secrets hold secrets."""
    with pytest.raises(ProtocolError) as caught:
        decode_frame(b'{"type":"ADDED","object":{"data":{"password":"aHVudGVyMg=="}')
    assert "aHVudGVyMg" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_frame_reads_whatever_the_order_of_its_members():
    assert decode_frame(b' {"object": {"a": 1}, "extra": [1], "type": "DELETED"} ') == WatchFrame(
        "DELETED", b'{"a": 1}'
    )
