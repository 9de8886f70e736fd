"""Objects of manifests are written as their texts say."""

from samples.site import Site, SiteSpec
from steersman import ObjectMeta
from steersman.kinds.core_v1 import ConfigMap
from steersman.manifests import dump_manifests, load_manifests

TEXT = """
apiVersion: {group}/v1
kind: Site
metadata: {{name: home, namespace: {namespace}}}
spec: {{image: nginx}}
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: home, namespace: {namespace}}}
data: {{a: "1"}}
"""


async def test_loaded_objects_are_created_and_applied(client, namespace, sites):
    """Without defaults of the class, which would claim fields that the text does not name."""
    text = TEXT.format(group=Site.gvk().group, namespace=namespace)
    for loaded in load_manifests(text, kinds=[Site]):
        await client.create(loaded)
        applied = await client.apply(loaded, field_manager="manifests", force=True)
        owned = next(each.fields_v1 for each in applied.metadata.managed_fields if each.manager == "manifests")
        assert "f:replicas" not in str(owned)


async def test_what_the_server_added_is_not_dumped(client, namespace):
    config = ConfigMap(metadata=ObjectMeta(name="a", namespace=namespace), data={"b": "c"})
    text = dump_manifests([await client.create(config)])
    assert (
        text == f"---\napiVersion: v1\ndata:\n  b: c\nkind: ConfigMap\nmetadata:\n  name: a\n  namespace: {namespace}\n"
    )
    assert load_manifests(text) == [config]


async def test_an_object_of_the_server_can_be_moved(client, namespace, sites):
    """Dump, load, create under another name: uid and resourceVersion would be refused."""
    await client.create(Site(metadata=ObjectMeta(name="one", namespace=namespace), spec=SiteSpec(image="nginx")))
    (copy,) = load_manifests(dump_manifests([await client.get(Site, f"{namespace}/one")]), kinds=[Site])
    copy.metadata.name = "two"
    assert (await client.create(copy)).spec.image == "nginx"
