"""Objects without parts, as an API server sends them while it prunes fields for server-side apply."""

from __future__ import annotations

import msgspec
import pytest

from samples.shops import GROUP, OldShop, Shop, downgraded, old_shop, shop, upgraded
from steersman.objects import ConversionReview
from steersman.webhooks import VersionConverter, WebhookServer

OLD, NEW = f"{GROUP}/v1alpha1", f"{GROUP}/v1"


class Converter:
    """The functions of the samples, which demand a name and a host; counts their calls."""

    def __init__(self):
        self.calls = 0
        converter = VersionConverter(OldShop, Shop, to_hub=self.upgraded, to_spoke=self.downgraded)
        self._server = WebhookServer([converter])

    def upgraded(self, old: OldShop) -> Shop:
        self.calls += 1
        assert old.metadata.name.islower()
        assert old.spec.domain.strip()
        return upgraded(old)

    def downgraded(self, new: Shop) -> OldShop:
        self.calls += 1
        assert new.metadata.name.islower()
        assert new.spec.host.strip()
        return downgraded(new)

    async def __call__(self, tree, desired):
        request = {"uid": "7", "desiredAPIVersion": desired, "objects": [tree]}
        review = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request}
        answer = await self._server.answer("/convert", msgspec.json.encode(review))
        response = msgspec.json.decode(answer, type=ConversionReview).response
        assert response.result.status == "Success", response.result.message
        [made] = response.converted_objects
        return msgspec.json.decode(made)


async def test_an_object_whose_name_the_server_will_generate_loses_no_field():
    """kube-apiserver generates the name after mutating admission, for which it may convert the object."""
    convert = Converter()
    given = shop(image="shop:1", replicas=3)
    del given["metadata"]["name"]
    given["metadata"]["generateName"] = "corner-"
    there = await convert(given, OLD)
    assert "name" not in there["metadata"]
    back = await convert(there, NEW)
    assert back["spec"] == given["spec"]
    assert back["metadata"]["generateName"] == "corner-"


@pytest.mark.parametrize(
    "given",
    [
        {"metadata": {"name": "corner", "namespace": "town", "uid": "7"}},
        {"metadata": {"labels": {"a": "b"}}},
        {"metadata": None, "spec": None},
        {},
    ],
)
async def test_without_parts_no_function_is_called(given):
    """The API server requires metadata in the result."""
    convert = Converter()
    made = await convert({"apiVersion": OLD, "kind": "Shop", **given}, NEW)
    assert made == {"apiVersion": NEW, "kind": "Shop", "metadata": given.get("metadata") or {}}
    assert convert.calls == 0


async def test_without_a_name_the_rest_is_converted():
    given = old_shop(size="large")
    for metadata in ({"labels": {"a": "b"}}, {}):
        made = await Converter()(given | {"metadata": metadata}, NEW)
        assert made == shop(replicas=5) | {"metadata": metadata}
    del given["metadata"]
    assert (await Converter()(given, NEW))["spec"] == {"host": "a.example.com", "replicas": 5}


async def test_a_status_without_a_spec_is_converted():
    given = {"apiVersion": OLD, "kind": "Shop", "metadata": {"name": "corner"}, "status": {"visitors": 3}}
    assert await Converter()(given, NEW) == given | {"apiVersion": NEW}


async def test_what_depends_on_an_absent_field_is_absent():
    """The server compares which fields there are: an invented host would keep a field that its manager gave up."""
    given = shop(replicas=5, items=[{"name": "tea"}])
    del given["spec"]["host"]
    made = await Converter()(given, OLD)
    assert made["spec"] == {"size": "large", "items": [{"name": "tea"}]}
    assert made["metadata"] == given["metadata"]
