"""Conversions: there and back loses nothing, and an edit in the other version wins."""

from __future__ import annotations

from random import Random  # noqa: TID251 - seeded
from typing import Any

import msgspec
import pytest

from samples.portions import count, seed_of
from samples.random_shops import random_old_shop, random_shop
from samples.shops import GROUP, OldShop, Shop, ShopSpec, downgraded, old_shop, old_shops, shop, upgraded
from steersman.kinds.core_v1 import Pod
from steersman.objects import ConversionResponse, ConversionReview
from steersman.webhooks import SAVED_FIELDS, VersionConverter, WebhookServer


def conversion(desired: str, *objects: Any) -> bytes:
    request = {"uid": "7", "desiredAPIVersion": f"{GROUP}/{desired}", "objects": objects}
    return msgspec.json.encode(
        {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request}
    )


async def answer(server: WebhookServer, desired: str, *objects: Any) -> ConversionResponse:
    body = await server.answer("/convert", conversion(desired, *objects))
    response = msgspec.json.decode(body, type=ConversionReview).response
    assert response is not None
    assert response.uid == "7"
    return response


async def convert(server: WebhookServer, desired: str, *objects: Any) -> list[Any]:
    response = await answer(server, desired, *objects)
    assert response.result.status == "Success", response.result
    return [msgspec.json.decode(each) for each in response.converted_objects or ()]


async def test_a_conversion_in_both_directions():
    server = WebhookServer([old_shops()])
    [new] = await convert(server, "v1", old_shop(size="large", items=[{"name": "tea", "price": "3"}]))
    assert new == shop(replicas=5, items=[{"name": "tea", "price": 3}])
    [old] = await convert(server, "v1alpha1", new)
    assert old == old_shop(size="large", items=[{"name": "tea", "price": "3"}])


async def test_fields_that_the_other_version_lacks_are_saved():
    """`color` exists only in the old version, `tax` only in the new one, `unknown` in no type."""
    server = WebhookServer([old_shops()])
    old = old_shop(color="red", unknown={"a": [1, None]}, items=[{"name": "tea", "price": "03", "note": "x"}])
    [new] = await convert(server, "v1", old)
    assert SAVED_FIELDS in new["metadata"]["annotations"]
    assert await convert(server, "v1alpha1", new) == [old]
    new = shop(items=[{"name": "tea", "price": 3, "tax": 1}], protected=True) | {"unknown": 1}
    assert await convert(server, "v1", *await convert(server, "v1alpha1", new)) == [new]


async def test_a_function_that_fails_is_called_once():
    """Otherwise its log lines and side effects come twice."""
    calls = []

    def failing(given: OldShop) -> Shop:
        calls.append(given)
        raise RuntimeError("no such color")

    server = WebhookServer([VersionConverter(OldShop, Shop, to_hub=failing, to_spoke=downgraded)])
    response = await answer(server, "v1", old_shop())
    assert "no such color" in response.result.message
    assert len(calls) == 1


async def test_an_object_that_cannot_be_read_is_named_as_such():
    response = await answer(WebhookServer([old_shops()]), "v1", {"apiVersion": f"{GROUP}/v1alpha1", "kind": 5})
    assert "the object cannot be read: Expected `str`, got `int`" in response.result.message


async def test_an_edit_in_the_other_version_wins():
    server = WebhookServer([old_shops()])
    old = old_shop(color="red", size="tiny", items=[{"name": n, "price": "1", "note": n} for n in ("tea", "milk")])
    [new] = await convert(server, "v1", old)
    new["spec"]["replicas"] = 5
    new["spec"]["items"].reverse()
    new["spec"]["items"][0]["price"] = 2
    new["spec"]["items"].insert(0, {"name": "bag", "price": 0})
    [back] = await convert(server, "v1alpha1", new)
    assert back == old_shop(
        color="red",
        size="large",
        items=[
            {"name": "bag", "price": "0"},
            {"name": "milk", "price": "2", "note": "milk"},
            {"name": "tea", "price": "1", "note": "tea"},
        ],
    )


async def test_the_annotation_of_a_user_is_never_trusted():
    """An edited or foreign annotation changes nothing else, and converting does not fail."""
    server = WebhookServer([old_shops()])
    for text in (
        "",
        "{",
        "[]",
        '{"v1alpha1":[{}]}',
        '{"v1alpha1":[{"path":[],"value":1}]}',
        '{"v1alpha1":[{"path":[1]}]}',
    ):
        given = shop()
        given["metadata"]["annotations"] = {SAVED_FIELDS: text}
        [old] = await convert(server, "v1alpha1", given)
        assert old["spec"]["domain"] == "a.example.com"
    given["metadata"]["annotations"] = {SAVED_FIELDS: '{"v1alpha1":[{"path":["spec","x","y"],"value":1}]}'}
    [old] = await convert(server, "v1alpha1", given)
    assert "x" not in old["spec"]


@pytest.mark.parametrize(
    "saved",
    [
        {"path": ["metadata", "name"], "back": "corner", "value": "other"},
        {"path": ["metadata", "uid"], "value": "1"},
        {"path": ["metadata", "labels"], "value": {"a": 1}},
        {"path": ["metadata", "labels"], "value": {"a": "not a label"}},
        {"path": ["metadata", "annotations"], "value": {"not a key": ""}},
        {"path": ["metadata"], "back": {"name": "corner", "namespace": "town"}, "value": 1},
        {"path": ["kind"], "back": "Shop", "value": "Other"},
        {"path": ["apiVersion"], "back": f"{GROUP}/v1alpha1", "value": "v1"},
        {"path": ["spec", "domain"], "back": "a.example.com", "value": 1},
        {"path": ["spec"], "back": {"domain": "a.example.com", "size": "small"}},
        {"path": ["spec", "items"], "value": [{"name": "tea", "price": "x"}]},
    ],
)
async def test_an_edited_annotation_makes_no_object_unreadable(saved: dict[str, Any]):
    """One invalid object would fail every list of its kind."""
    given = shop()
    given["metadata"]["annotations"] = {SAVED_FIELDS: msgspec.json.encode({"v1alpha1": [saved, saved]}).decode()}
    [old] = await convert(WebhookServer([old_shops()]), "v1alpha1", given)
    old["metadata"].pop("annotations")
    assert old == old_shop(size="small")


async def test_the_items_of_a_long_list_are_matched_quickly():
    """Also if a user made up the saved items; a saved item is restored at most once."""
    server = WebhookServer([old_shops()])
    items = [{"name": f"{number}", "price": f"0{number}"} for number in range(5_000)]
    [new] = await convert(server, "v1", old_shop(items=items))
    new["spec"]["items"].reverse()
    new["spec"]["items"][7]["price"] = -1
    [old] = await convert(server, "v1alpha1", new)
    assert old["spec"]["items"] == [*items[:-8:-1], {"name": "4992", "price": "-1"}, *items[-9::-1]]
    saved = {"path": ["spec", "items"], "items": [[{"name": "tea"}, {"name": "tea", "note": "x" * 1_000}]]}
    new = shop(items=[{"name": "tea", "price": number} for number in range(1_000)])
    new["metadata"]["annotations"] = {SAVED_FIELDS: msgspec.json.encode({"v1alpha1": [saved]}).decode()}
    [old] = await convert(server, "v1alpha1", new)
    assert not any("note" in item for item in old["spec"]["items"])


async def test_metadata_passes_unchanged():
    metadata = {
        "name": "corner",
        "uid": "1",
        "managedFields": [{"fieldsV1": {"f:spec": {}}}],
        "labels": {"a": "b"},
        "futureField": 1,
    }
    server = WebhookServer([old_shops()])
    [new] = await convert(server, "v1", old_shop(size="small") | {"metadata": metadata})
    assert new["metadata"] == metadata


async def test_random_round_trips_lose_nothing():
    random = Random(seed_of("round trips"))
    server = WebhookServer([old_shops()])
    number = count(sample=1_000, of=10_000)
    for version, other, objects in (
        ("v1", "v1alpha1", [random_shop(random) for _ in range(number)]),
        ("v1alpha1", "v1", [random_old_shop(random) for _ in range(number)]),
    ):
        there = await convert(server, other, *objects)
        assert await convert(server, version, *there) == objects


async def test_a_failing_object_fails_the_review_and_is_named():
    """The API server must not store half a list."""
    response = await answer(
        WebhookServer([old_shops()]), "v1", old_shop(), old_shop(items=[{"name": "a", "price": "x"}])
    )
    assert not response.converted_objects
    assert response.result.status == "Failure"
    assert response.result.message.startswith("cannot convert Shop town/corner: the conversion failed: ValueError")


@pytest.mark.parametrize("given", [{}, {"apiVersion": 1}, [], 1, {"apiVersion": f"{GROUP}/v9", "kind": "Shop"}])
async def test_what_has_no_converter_fails(given: Any):
    response = await answer(WebhookServer([old_shops()]), "v1", given)
    assert response.result.status == "Failure"


async def test_three_versions_go_through_the_hub():
    class NewShop(Shop, group=GROUP, version="v2", kind="Shop", plural="shops", storage=False):
        """The shop of the future."""

    def up(given: NewShop) -> Shop:
        return Shop(metadata=given.metadata, spec=ShopSpec(host=given.spec.host), status=given.status)

    def down(given: Shop) -> NewShop:
        return NewShop(metadata=given.metadata, spec=ShopSpec(host=given.spec.host), status=given.status)

    server = WebhookServer([old_shops(), VersionConverter(NewShop, Shop, to_hub=up, to_spoke=down)])
    old = old_shop(color="red", size="large")
    new = await convert(server, "v2", old)
    assert new[0]["apiVersion"] == f"{GROUP}/v2"
    assert await convert(server, "v1alpha1", *new) == [old]


def test_wrong_declarations_say_what_to_write():
    with pytest.raises(TypeError, match="versions of one kind"):
        VersionConverter(OldShop, other_kind(), to_hub=upgraded, to_spoke=downgraded)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="both classes have version v1"):
        VersionConverter(Shop, Shop, to_hub=lambda s: s, to_spoke=lambda s: s)
    with pytest.raises(TypeError, match="only custom resources"):
        VersionConverter(Pod, Shop, to_hub=upgraded, to_spoke=downgraded)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="two converters of version v1alpha1"):
        WebhookServer([old_shops(), old_shops()])


def other_kind() -> type[Any]:
    class Mall(Shop, group=GROUP, version="v1"):
        """Another kind."""

    return Mall
