"""Shards: ranges of hashes, and their text."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from steersman.wire import (
    CollectionOptions,
    HashRange,
    InvalidShardSelector,
    ListOptions,
    ShardSelector,
    WatchOptions,
    read_shard_bound,
    read_shard_field,
    shard_hash,
    split_list,
)

HASHES = 2**64
hashes = st.integers(0, HASHES - 1)


@st.composite
def hash_ranges(draw: st.DrawFn) -> HashRange:
    start, end = sorted(draw(st.lists(st.integers(0, HASHES), min_size=2, max_size=2, unique=True)))
    return HashRange(start, end)


selectors = st.builds(
    ShardSelector, st.sampled_from(["uid", "namespace"]), st.lists(hash_ranges(), min_size=1, max_size=4).map(tuple)
)

#: As kube-apiserver 1.36.3 computes them; test_shards_engine asks it again.
VECTORS = {
    "": 0xCBF29CE484222325,
    "ta": 0x08C82F07B56AAFA6,
    "tb": 0x08C82E07B56AADF3,
    "tj": 0x08C83607B56ABB8B,
}


@pytest.mark.parametrize("text", VECTORS)
def test_the_hash_is_the_servers(text: str) -> None:
    """A client with another hash drops objects that the server sends, and loses them."""
    assert shard_hash(text) == VECTORS[text]


def test_similar_names_fall_into_one_range() -> None:
    """The reason to divide the hashes by measured objects, not by width."""
    quarters = [shard_hash(f"ns-{number:03}") // (HASHES // 4) for number in range(500)]
    assert [quarters.count(quarter) for quarter in range(4)] == [0, 0, 500, 0]


@given(selectors)
def test_a_selector_survives_its_text(selector: ShardSelector) -> None:
    assert ShardSelector.parse(str(selector)) == selector


def test_a_selector_is_printed_as_a_server_prints_it() -> None:
    both = ShardSelector("uid", (HashRange(0, 0xFF), HashRange(2**63, HASHES)))
    assert str(both) == (
        "shardRange(object.metadata.uid, '0x0000000000000000', '0x00000000000000ff')"
        " || shardRange(object.metadata.uid, '0x8000000000000000', '0x10000000000000000')"
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nonsense",
        "shardRange(object.metadata.uid,'0x0000000000000000','0x8000000000000000')",
        "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000') || ",
        "shardRange(object.metadata.name, '0x0000000000000000', '0x8000000000000000')",
        "shardRange(object.metadata.uid, '0x8000000000000000', '0x8000000000000000')",
        "shardRange(object.metadata.uid, '0x0000000000000000', '0x20000000000000000')",
    ],
)
def test_other_texts_are_not_parsed(text: str) -> None:
    """A client that misreads what the server selected believes that it has all of its shard."""
    with pytest.raises(InvalidShardSelector):
        ShardSelector.parse(text)


def test_the_ranges_of_a_selector_are_of_one_field() -> None:
    with pytest.raises(InvalidShardSelector, match="all shard ranges must use the same field"):
        ShardSelector.of([("uid", HashRange()), ("namespace", HashRange())])
    with pytest.raises(InvalidShardSelector, match="needs a range"):
        ShardSelector("uid", ())


@given(hash_ranges(), hashes)
def test_a_split_puts_each_hash_into_one_part(whole: HashRange, at: int) -> None:
    if not whole.start < at < whole.end:
        with pytest.raises(InvalidShardSelector):
            whole.split(at)
        return
    low, high = whole.split(at)
    assert low.width + high.width == whole.width
    assert low.is_adjacent(high)
    assert high.is_adjacent(low)
    assert not low.overlaps(high)
    for found in (whole.start, at - 1, at, whole.end - 1):
        assert whole.contains(found)
        assert low.contains(found) != high.contains(found)


@given(hash_ranges(), hash_ranges())
def test_ranges_overlap_if_a_hash_is_in_both(one: HashRange, other: HashRange) -> None:
    shares = any(one.contains(found) and other.contains(found) for found in (one.start, other.start))
    assert one.overlaps(other) == other.overlaps(one) == shares


@pytest.mark.parametrize(("start", "end"), [(1, 1), (2, 1), (-1, 1), (0, HASHES + 1), (HASHES, HASHES)])
def test_a_range_is_never_empty_nor_outside(start: int, end: int) -> None:
    with pytest.raises(InvalidShardSelector):
        HashRange(start, end)


def test_a_selector_selects_by_its_field() -> None:
    """Objects without a namespace share one hash, so they are all in one shard."""
    at = shard_hash("shop")
    by_namespace = ShardSelector("namespace", (HashRange(at, at + 1),))
    assert by_namespace.selects(namespace="shop", uid="x")
    assert not by_namespace.selects(namespace="", uid="shop")
    by_uid = ShardSelector("uid", (HashRange(0, 1), HashRange(at, at + 1)))
    assert by_uid.selects(namespace="", uid="shop")
    assert not by_uid.selects(namespace="shop", uid="x")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("00", "hexEnd must have '0x' prefix, got \"00\""),
        ("0x", "hexEnd: hex value is required after '0x'"),
        ("0x" + "0" * 18, f'hexEnd: hex value too long (18 chars, max 17): "{"0" * 18}"'),
        ("0x0A", 'hexEnd: invalid hex character "A" in "0x0A"'),
        ("0xff", 'hexEnd must be a 0x-prefixed 16-digit hex value, got "0xff" (did you mean "0x00000000000000ff"?)'),
        (
            "0x00000000000000000",
            "hexEnd: 17-digit hex value must be '0x10000000000000000' (2^64), got \"0x00000000000000000\"",
        ),
    ],
)
def test_a_wrong_bound_is_explained_in_the_servers_words(text: str, why: str) -> None:
    with pytest.raises(InvalidShardSelector) as invalid:
        read_shard_bound("hexEnd", text)
    assert str(invalid.value) == why


def test_a_field_must_be_one_of_two() -> None:
    assert read_shard_field("object.metadata.uid") == "uid"
    with pytest.raises(InvalidShardSelector) as invalid:
        read_shard_field("metadata.uid")
    words = 'unsupported field path "metadata.uid"; supported: object.metadata.uid, object.metadata.namespace'
    assert str(invalid.value) == words


def test_lists_and_watches_can_select_a_shard() -> None:
    """The next page needs the selector again: without it, the server sends the rest of all shards."""
    shard = ShardSelector("namespace", (HashRange(0, 2**63),))
    query = ("shardSelector", str(shard))
    assert query in ListOptions(shards=shard).next_page("token").to_query()
    assert query in WatchOptions(shards=shard).to_query()


def test_a_deletion_cannot_select_a_shard() -> None:
    """A server without the feature would delete everything."""
    with pytest.raises(TypeError):
        CollectionOptions(shards=ShardSelector("uid", (HashRange(),)))  # pyright: ignore[reportCallIssue]
    options = CollectionOptions(label_selector="a", timeout_seconds=1)
    assert CollectionOptions.from_query(options.to_query()) == options


def test_a_list_tells_which_shard_it_is() -> None:
    """The only sign that a server has applied a selector: one without the feature ignores it."""
    said = '{"items":[],"metadata":{"resourceVersion":"1","shardInfo":{"selector":"x"}}}'
    assert split_list(said.encode()).shard_selector == "x"
    assert split_list(b'{"items":[],"metadata":{"resourceVersion":"1"}}').shard_selector == ""
