"""Selectors of thousands of terms: what they cost does not grow with the objects that they look at."""

import json
from time import process_time  # noqa: TID251 - how the time of a computation grows is what is looked at

import pytest

from steersman.apiserver.watching.matchers import FieldMatcher, LabelMatcher, ShardMatcher
from steersman.objects import FieldSelector, Selector
from steersman.wire import HashRange, HttpRequest, ShardSelector

MAPS = "/api/v1/namespaces/default/configmaps"


async def test_a_selector_of_thousands_of_terms_is_matched_in_time(server, raw):
    for number in range(300):
        await raw.post(MAPS, {"metadata": {"name": f"c{number}", "labels": {"a": "b", "n": str(number)}}})

    async def listed(selector: str) -> tuple[float, int]:
        begin = process_time()
        reply = await server.handler(HttpRequest("GET", MAPS, (("labelSelector", selector),)))
        return process_time() - begin, len(json.loads(reply.body)["items"])

    terms = (
        [f"a!=x{n}" for n in range(2_000)] + [f"!y{n}" for n in range(2_000)] + [f"n<{300 + n}" for n in range(2_000)]
    )
    few, _ = await listed(",".join(terms[:60]))
    many, found = await listed(",".join(terms))
    assert found == 300
    assert many < 60 * few + 0.2, "what grows with the terms is reading them, not looking at each object"
    assert (await listed(",".join([*terms, "n>200", "n notin (250)", "a in (b,c)", "a"])))[1] == 98
    assert (await listed(",".join([*terms, "n>200", "a in (c)"])))[1] == 0


LABELS = [{}, {"a": "b"}, {"a": "5"}, {"a": "5", "c": ""}, {"a": "7", "c": "d", "e": "f"}, {"c": "5"}]
TERMS = [
    "a",
    "!a",
    "a=b",
    "a!=b",
    "a in (b,5)",
    "a notin (5,7)",
    "a>4",
    "a<6",
    "a>5",
    "a==5",
    "c",
    "!c",
    "c=",
    "e notin (f)",
]


@pytest.mark.parametrize("first", TERMS)
def test_a_matcher_says_what_its_selector_says(first):
    for second in TERMS:
        for third in ("a!=9", "c!=x", "a>1", "!z"):
            selector = Selector.parse(f"{first},{second},{third}")
            matcher = LabelMatcher(selector)
            for labels in LABELS:
                assert matcher.matches(labels) == selector.matches(labels), (str(selector), labels)


def test_a_matcher_of_fields_says_what_its_selector_says():
    texts = ["a=1", "a!=1", "a=1,a=2", "a=1,b!=2", "a!=1,a!=2,b=", "b=2,a!="]
    for text in texts:
        selector = FieldSelector.parse(text)
        for fields in ({"a": "1"}, {"a": "2", "b": "2"}, {"a": "3"}, {"a": "1", "b": "2"}, {"b": "2"}):
            found = FieldMatcher(selector).matches(lambda name, fields=fields: fields.get(name, ""))
            assert found == selector.matches(fields), (text, fields)


SHARDS = [
    [(2, 4)],
    [(0, 1), (3, 5)],
    [(3, 5), (0, 1)],
    [(1, 6), (2, 3)],
    [(1, 2), (2, 4)],
    [(0, 3), (1, 4), (6, 7)],
    [(5, 6)] * 3,
]


@pytest.mark.parametrize("ranges", SHARDS)
def test_a_matcher_of_shards_says_what_its_selector_says(ranges):
    matcher = ShardMatcher(ShardSelector("uid", tuple(HashRange(start, end) for start, end in ranges)))
    for number in range(8):
        assert matcher.takes(number) == any(start <= number < end for start, end in ranges), number


def test_a_shard_of_many_ranges_costs_what_one_of_two_costs():
    """A thousand watches of 200 ranges each would delay every write by a tenth of a second."""
    few, many = (
        ShardMatcher(ShardSelector("uid", tuple(HashRange(2 * at, 2 * at + 1) for at in range(count))))
        for count in (2, 200)
    )

    def cost(matcher: ShardMatcher) -> float:
        begin = process_time()
        for _ in range(20_000):
            matcher.takes(2**63)
        return process_time() - begin

    cost(few)
    assert cost(many) < 5 * cost(few) + 0.05
