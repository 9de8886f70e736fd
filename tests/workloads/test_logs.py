"""The text of a log: which lines, in which form, across rotated files, and until when a follower reads."""

import asyncio
import os
import resource
from contextlib import contextmanager

import pytest

from steersman.aio import Supervisor
from steersman.workloads.logs import InvalidLogOptions, LogOptions, read_log, read_options
from steersman.workloads.processes.zygote.output import Log


async def ended():
    return True


async def text(path, has_ended=ended, **options):
    return b"".join([piece async for piece in read_log(str(path), LogOptions(**options), has_ended)]).decode()


def written(path, number, *, first=1, limit=10 << 20, keep=2):
    log = Log(str(path), limit, keep)
    for each in range(first, first + number):
        log.write(f"line {each}\n".encode())
    return log


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "line 1\nline 2\nline 3\nline 4\n"),
        ({"limit": 2}, "line 1\nline 2\n"),
        ({"tail": 2}, "line 3\nline 4\n"),
        ({"tail": 9}, "line 1\nline 2\nline 3\nline 4\n"),
        ({"skip": 3}, "line 4\n"),
        ({"skip": 1, "limit": 2}, "line 2\nline 3\n"),
        ({"skip": 2, "line_numbers": True}, "3 line 3\n4 line 4\n"),
        ({"tail": 1, "limit": 1, "line_numbers": True}, "4 line 4\n"),
    ],
)
async def test_options_select_lines(tmp_path, options, expected):
    """Rules limit, tail, skip and line_numbers of the log subresource."""
    written(tmp_path / "out", 4)
    assert await text(tmp_path / "out", **options) == expected


@contextmanager
def few_descriptors(free):
    """Leave only this many unused descriptors to this process."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    held = [os.open("/dev/null", os.O_RDONLY) for _ in range(20)]
    limit = held[-1] + 1
    for each in held[len(held) - free :]:
        os.close(each)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        for each in held[: len(held) - free]:
            os.close(each)


async def test_a_follower_waits_for_a_descriptor_and_misses_nothing(tmp_path):
    written(tmp_path / "out", 4)
    async with Supervisor() as tasks:
        with few_descriptors(0):
            reading = tasks.start(text(tmp_path / "out", follow=True, tail=3), name="follower")
            _, waiting = await asyncio.wait([reading], timeout=0.1)
            assert waiting
        assert await reading == "line 2\nline 3\nline 4\n"


async def test_a_reader_without_descriptors_fails_and_keeps_none(tmp_path, monkeypatch):
    """Three files need a descriptor each; those that were opened before the failure are closed."""
    monkeypatch.setattr("steersman.workloads.logs._AGAIN", 0)
    written(tmp_path / "out", 20, limit=60)
    assert (tmp_path / "out.2").exists()
    with few_descriptors(2):
        with pytest.raises(OSError, match="Too many open files"):
            await text(tmp_path / "out")
        for each in [os.open("/dev/null", os.O_RDONLY) for _ in range(2)]:
            os.close(each)


async def test_timestamps_are_shown_on_request(tmp_path):
    """Rule timestamps."""
    written(tmp_path / "out", 1)
    stamped = await text(tmp_path / "out", timestamps=True)
    assert stamped.endswith("Z line 1\n")
    assert stamped[4] == "-"


@pytest.mark.parametrize("options", [{}, {"skip": 700}, {"tail": 5000}, {"tail": 1}])
async def test_a_long_log_has_the_same_lines_with_and_without_timestamps(tmp_path, options):
    """A reader of the times gets the pieces of the file as they are; no line may be lost between two of them."""
    log = written(tmp_path / "out", 9000)
    log.write(b"unfinished")
    stamped = await text(tmp_path / "out", timestamps=True, **options)
    plain = [line.partition(" ")[2] for line in stamped.splitlines()]
    assert plain == (await text(tmp_path / "out", **options)).splitlines()
    assert plain[-1] == "unfinished"


async def test_a_last_line_without_a_newline_is_shown(tmp_path):
    log = written(tmp_path / "out", 1)
    log.write(b"unfinished")
    assert await text(tmp_path / "out") == "line 1\nunfinished\n"
    assert await text(tmp_path / "out", tail=1) == "unfinished\n"


@pytest.mark.parametrize("ending", ["\n", ""])
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "first\n{long}\nlast\n"),
        ({"line_numbers": True}, "1 first\n2 {long}\n3 last\n"),
        ({"skip": 1, "limit": 1}, "{long}\n"),
        ({"limit": 1}, "first\n"),
        ({"tail": 1}, "last\n"),
        ({"skip": 2}, "last\n"),
    ],
)
async def test_a_long_line_is_delivered_in_pieces(tmp_path, options, expected, ending):
    """A program that prints megabytes without a newline must not fill the memory of its reader."""
    long = "x" * 1_000_000
    (tmp_path / "out").write_text(f"first\n{long}\nlast{ending}")
    found = [piece async for piece in read_log(str(tmp_path / "out"), LogOptions(**options), ended)]
    assert b"".join(found).decode() == expected.format(long=long)
    assert max(map(len, found)) < 200_000


async def test_a_long_last_line_without_a_newline_is_shown(tmp_path):
    (tmp_path / "out").write_text("x" * 500_000)
    assert await text(tmp_path / "out") == "x" * 500_000 + "\n"


async def test_rotated_files_are_one_text(tmp_path):
    written(tmp_path / "out", 12, limit=200)
    assert (tmp_path / "out.2").exists()
    kept = (await text(tmp_path / "out")).splitlines()
    assert kept == [f"line {each}" for each in range(13 - len(kept), 13)]
    assert len(kept) > 8
    assert await text(tmp_path / "out", tail=7) == "".join(f"line {each}\n" for each in range(6, 13))


async def test_a_log_that_does_not_exist_is_empty(tmp_path):
    assert await text(tmp_path / "missing") == ""
    assert await text(tmp_path / "missing", tail=3) == ""


async def test_a_follower_gets_every_line_across_rotations_and_ends_with_its_program(tmp_path):
    """Rule follow: rotation loses no line that a reader keeps up with, and the end of the program ends the stream."""
    log = written(tmp_path / "out", 2, limit=200, keep=3)
    rounds = iter(range(20))

    async def more():
        number = next(rounds, None)
        if number is None:
            return True
        log.write(f"line {number + 3}\n".encode())
        return False

    async with asyncio.timeout(30):
        followed = await text(tmp_path / "out", more, follow=True, tail=1)
    assert followed == "".join(f"line {each}\n" for each in range(2, 23))


@pytest.mark.parametrize("change", ["deleted", "moved", "truncated", "replaced"])
async def test_a_log_that_is_changed_by_hand_goes_on(tmp_path, change):
    """Its writer makes a new file of that name, and its follower reads each line once, also of rotated files."""
    path = tmp_path / "out"
    log = written(path, 6, limit=200, keep=3)
    # The rotated file has ended before, by the clock of the file system.
    os.utime(tmp_path / "out.1", (1, 1))
    rounds = iter(range(3))

    async def more():
        number = next(rounds, None)
        if number is None:
            return True
        if number == 1:
            if change == "moved":
                path.rename(tmp_path / "kept")
            elif change == "truncated":
                os.truncate(path, 0)
            else:
                path.unlink()
            if change == "replaced":
                os.mkfifo(path)
                log.write(b"lost\n")
                path.unlink()
            return False
        log.write(f"line {number + 7}\n".encode())
        return False

    async with asyncio.timeout(30):
        followed = await text(path, more, follow=True)
    assert followed == "".join(f"line {each}\n" for each in (1, 2, 3, 4, 5, 6, 7, 9))
    assert path.read_bytes().endswith(b"line 9\n")
    assert not path.stat().st_mode & 0o077


async def test_a_follower_waits_for_a_file(tmp_path):
    asked = iter([False, False, True])

    async def late():
        if not (tmp_path / "out").exists():
            written(tmp_path / "out", 1)
        return next(asked)

    async with asyncio.timeout(60):
        assert await text(tmp_path / "out", late, follow=True) == "line 1\n"


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"source": "both"}, "source must be one of stdout, stderr, startup_stdout, startup_stderr, system"),
        ({"tail": "0"}, "tail must be a whole number of at least 1"),
        ({"tail": "many"}, "tail must be a whole number"),
        ({"tail": "1000001"}, "tail must be at most"),
        ({"skip": "-1"}, "skip must be a whole number of at least 0"),
        ({"limit": "3", "follow": "true"}, "limit cannot be combined with follow"),
        ({"tail": "3", "skip": "1"}, "tail cannot be combined with skip"),
        ({"follow": "perhaps"}, "follow must be true or false"),
    ],
)
def test_an_invalid_query_is_refused_with_a_sentence(query, words):
    with pytest.raises(InvalidLogOptions, match=words):
        read_options(query)


def test_a_query_without_values_means_yes():
    assert read_options({"follow": "", "timestamps": "true", "line_numbers": "1", "skip": "0"}) == LogOptions(
        follow=True, timestamps=True, line_numbers=True
    )
