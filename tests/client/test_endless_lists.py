"""Lists of servers that never come to an end, or hold something else than was asked for, in virtual time."""

import json
from itertools import count

import pytest

from samples.site import Site
from samples.virtual_time import run_virtual
from steersman import Client
from steersman.errors import ProtocolError
from steersman.kinds.core_v1 import ConfigMap
from steersman.transport import InProcessTransport, ServerResponse

JSON = (("Content-Type", "application/json"),)


def items(*names, **fields):
    return [{"metadata": {"name": name, "namespace": "default"}, **fields} for name in names]


def page(*objects, kind="ConfigMapList", api_version="v1", continue_=""):
    metadata = {"resourceVersion": "5"} | ({"continue": continue_} if continue_ else {})
    return {"kind": kind, "apiVersion": api_version, "metadata": metadata, "items": list(objects)}


def run(answer, scenario):
    """The result of a scenario, how many requests it took and how many seconds; ``answer`` gets their numbers."""
    requests = count()

    async def serve(request):
        del request
        return ServerResponse(status=200, headers=JSON, body=json.dumps(answer(next(requests))).encode())

    async def meet():
        async with Client(InProcessTransport(serve), field_manager="tests") as client:
            return await scenario(client)

    result, seconds = run_virtual(meet())
    return result, next(requests), seconds


def refusal(answer, scenario):
    async def refused(client):
        with pytest.raises(ProtocolError) as error:
            await scenario(client)
        return str(error.value)

    return run(answer, refused)


async def iterated(client):
    return [each.metadata.name async for each in client.iterate(ConfigMap)]


@pytest.mark.parametrize("scenario", [lambda client: client.list(ConfigMap), iterated])
def test_pages_without_items_end(scenario):
    """Ever new tokens neither run for ever nor as fast as the server answers."""
    words, requests, seconds = refusal(lambda number: page(continue_=f"t{number}"), scenario)
    assert words == "list ConfigMap: the server returned 500 pages in a row without items, and there are more"
    assert requests == 500
    assert seconds > 5


def test_a_few_pages_without_items_are_read_at_once():
    """A server may filter after it has cut a page."""

    def answer(number):
        return page(*items("a"), continue_="") if number == 9 else page(continue_=f"t{number}")

    names, requests, seconds = run(answer, iterated)
    assert (names, requests, seconds) == (["a"], 10, 0)


def test_a_list_ends_before_it_fills_the_memory():
    """The error says what to do, and `iterate` reads a list of any length."""

    def answer(number):
        last = number == 40
        return page(
            *items(*(f"a{number}-{n}" for n in range(100)), data={"a": "x" * 1000}),
            continue_="" if last else f"t{number}",
        )

    words, requests, _ = refusal(answer, lambda client: client.list(ConfigMap, max_bytes=1024 * 1024))
    advice = "select fewer objects, call iterate(), or pass list(max_bytes=...)"
    assert words == f"list ConfigMap: the list has more than 1 MiB; {advice}"
    assert requests == 10
    assert len(run(answer, iterated)[0]) == 4100
    assert len(run(answer, lambda client: client.list(ConfigMap))[0]) == 4100


@pytest.mark.parametrize(
    ("kind", "api_version", "fields"),
    [
        ("SecretList", "v1", {}),
        ("ConfigMapList", "apps/v1", {}),
        ("SecretList", "v1", {"kind": "ConfigMap", "apiVersion": "v1"}),
        ("Table", "meta.k8s.io/v1", {}),
        ("PartialObjectMetadataList", "meta.k8s.io/v1", {}),
    ],
)
def test_a_list_of_another_kind_is_an_error_that_names_both(kind, api_version, fields):
    answer = page(*items("a", **fields), kind=kind, api_version=api_version)
    words, _, _ = refusal(lambda _: answer, lambda client: client.list(ConfigMap))
    assert words.startswith(
        f"list ConfigMap: the server returned {kind} of {api_version} in place of ConfigMapList of v1"
    )


def test_metadata_may_come_as_what_it_is_or_as_whole_objects():
    for kind, api_version in (("PartialObjectMetadataList", "meta.k8s.io/v1"), ("ConfigMapList", "v1")):
        answer = page(*items("a"), kind=kind, api_version=api_version)
        listed, _, _ = run(lambda _, answer=answer: answer, lambda client: client.metadata.list(ConfigMap))
        assert [each.metadata.name for each in listed] == ["a"]


def test_a_crd_chooses_the_name_of_its_list():
    """The items then say what they are."""
    group = Site.gvk().api_version

    def answer(kind):
        return page(*items("a", kind=kind, apiVersion=group, spec={"image": "x"}), kind="Sites", api_version=group)

    listed, _, _ = run(lambda _: answer("Site"), lambda client: client.list(Site))
    assert [each.metadata.name for each in listed] == ["a"]
    assert "Sites of" in refusal(lambda _: answer("Other"), lambda client: client.list(Site))[0]


def test_an_item_that_is_no_object_of_the_kind_is_named():
    """By its name if it has one, else by its place."""
    odd = items("s", kind="Secret", apiVersion="v1")[0]
    answer = page(*items("a"), odd, 5, None, {"metadata": "x"}, {"metadata": {"name": 5}})
    listed, _, _ = run(lambda _: answer, lambda client: client.list(ConfigMap))
    assert [each.metadata.name for each in listed] == ["a"]
    told = [str(each.error) for each in listed.undecodable]
    assert told[0] == "cannot decode ConfigMap default/s: the server sent an object of kind Secret"
    assert [words.partition(":")[0] for words in told[1:]] == [f"items[{place}]" for place in (2, 3, 4, 5)]
