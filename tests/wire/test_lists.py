"""Lists: cut without decoding, each item on its own."""

from __future__ import annotations

import tracemalloc

import pytest

from steersman.errors import ProtocolError
from steersman.objects import Key
from steersman.wire import PageCount, RawList, key_of, split_list


def test_items_are_the_servers_bytes():
    """Number formats, spaces and the order of members are the server's own."""
    body = b'{"apiVersion":"v1","items":[ {"b" : 1.50, "a":"\\u00e9"} ,{}],"metadata":{"resourceVersion":"7"},"kind":"PodList"}'
    page = split_list(body)
    assert page.items == [b'{"b" : 1.50, "a":"\\u00e9"}', b"{}"]
    assert (page.kind, page.api_version, page.resource_version) == ("PodList", "v1", "7")


def test_go_prints_an_empty_list_as_null():
    assert split_list(b'{"kind":"PodList","apiVersion":"v1","metadata":{},"items":null}').items == []


def test_keeping_one_item_does_not_keep_the_page():
    item = b'{"data":"%s"}' % (b"x" * 1000)
    body = b'{"items":[%s]}' % b",".join([item] * 5000)
    tracemalloc.start()
    try:
        kept = split_list(bytes(bytearray(body))).items[0]
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert kept == item
    assert held < 100_000


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"null",
        b"<html>",
        b'{"kind":"Pod","metadata":{}}',
        b'{"items":{}}',
        b'{"items":[{}',
        b'{"items":[' + b"[" * 100_000,
        b'{"items":[],"metadata":[]}',
        b'{"items":[],"metadata":{"resourceVersion":7}}',
    ],
)
def test_what_is_no_list_is_a_protocol_error(body):
    with pytest.raises(ProtocolError, match="not a list"):
        split_list(body)


def test_an_error_about_a_list_does_not_show_it():
    with pytest.raises(ProtocolError) as caught:
        split_list(b'{"items":[{"data":{"password":"aHVudGVyMg=="}}]')
    assert "aHVudGVyMg" not in repr(caught.value)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b'{"metadata":{"name":"a","namespace":"b"}}', Key("b", "a")),
        (b'{"metadata":{"name":"a"},"spec":{"metadata":{"name":"x"}}}', Key("", "a")),
        (b'{"metadata":{"name":"a","namespace":null}}', Key("", "a")),
        (b"{}", Key("", "")),
        (b"[]", Key("", "")),
        (b"\xff", Key("", "")),
    ],
)
def test_the_key_of_an_object(raw, expected):
    assert key_of(raw) == expected


def test_the_pages_of_several_namespaces_may_have_the_same_tokens():
    """A token names where a page begins within its namespace, and namespaces may hold objects of the same names."""

    def page(token, size=10):
        return RawList(items=[b"x" * size], continue_=token)

    count = PageCount(max_bytes=1 << 20)
    count.add(page("same"))
    count.add(page("", size=600 << 10))
    count.add(page("same"))
    with pytest.raises(ProtocolError, match="same continue token twice"):
        count.add(page("same"))
    with pytest.raises(ProtocolError, match="more than 1 MiB"):
        count.add(page("", size=600 << 10))


def test_a_list_of_ever_more_small_pages_ends():
    """A faulty server could keep a client busy for ever, without ever filling its memory."""
    count = PageCount()
    for number in range(49_999):
        count.add(RawList(items=[b"{}"], continue_=str(number)))
    with pytest.raises(ProtocolError, match="more than 50000 pages"):
        count.add(RawList(items=[b"{}"], continue_="last"))


def test_a_giant_continue_token_is_not_sent_back():
    with pytest.raises(ProtocolError, match="continue token of 100000 characters"):
        PageCount().add(RawList(items=[], continue_="t" * 100_000))
