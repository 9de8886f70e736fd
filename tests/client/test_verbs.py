"""The verbs."""

import copy
import re

import pytest

from samples.site import GROUP, Port, Route, Site, SiteSpec, SiteStatus, ThinSite, site
from steersman import (
    Client,
    JsonPatch,
    Key,
    Kind,
    MergePatch,
    ObjectMeta,
    Request as ReconcileRequest,
    Resource,
    Spec,
    Unstructured,
    retry_on_conflict,
)
from steersman.cache import Cache, KindOptions
from steersman.client import StrategicPatch
from steersman.client.checks import STATUS_IGNORED
from steersman.controller import ReconcileClient, reconcile_pipeline
from steersman.errors import (
    AlreadyExists,
    Conflict,
    Invalid,
    KindNotServed,
    NotAnIntent,
    NotFound,
    NotNew,
    PartialObject,
)
from steersman.kinds.apps_v1 import Deployment, DeploymentSpec
from steersman.kinds.authentication_v1 import TokenRequest, TokenRequestSpec
from steersman.kinds.autoscaling_v1 import Scale
from steersman.kinds.core_v1 import (
    Binding,
    ConfigMap,
    Container,
    Namespace,
    ObjectReference,
    Pod,
    PodSpec,
    PodTemplateSpec,
    Service,
    ServiceAccount,
    ServicePort,
    ServiceSpec,
)
from steersman.kinds.meta_v1 import LabelSelector
from steersman.objects import replace, to_json
from steersman.patches import json_patch

SITE = Kind(f"{GROUP}/v1", "Site")


async def test_create_read_update_delete(client, namespace, sites):
    made = await client.create(site("home", namespace, replicas=2))
    assert made.metadata.uid
    assert made.spec.replicas == 2
    read = await client.get(Site, Key(namespace, "home"))
    assert read == made
    read.spec.replicas = 3
    updated = await client.update(read)
    assert updated.spec.replicas == 3
    assert updated.metadata.generation == 2
    await client.delete(updated)
    with pytest.raises(NotFound, match=f"get Site {namespace}/home"):
        await client.get(Site, f"{namespace}/home")


async def test_a_kind_without_a_type(client, namespace, sites):
    made = await client.create(
        Unstructured(
            {
                "apiVersion": f"{GROUP}/v1",
                "kind": "Site",
                "metadata": {"name": "dynamic", "namespace": namespace},
                "spec": {"image": "a"},
            }
        )
    )
    assert made.get("spec", "replicas") == 1  # the default of the schema
    made["spec"]["replicas"] = 4
    await client.update(made)
    assert [item.get("spec", "replicas") for item in await client.list(SITE, namespace=namespace)] == [4]
    await client.delete(made)


async def test_an_older_program_keeps_what_it_does_not_know(client, namespace, sites):
    ports = [Port(name="http", port=80), Port(name="admin", port=81)]
    await client.create(site("old", namespace, replicas=7, ports=ports, routes=[Route(path="/", weight=3)]))
    thin = await client.get(ThinSite, f"{namespace}/old")
    thin.spec.image = "changed"
    await client.update(thin)
    whole = await client.get(Site, f"{namespace}/old")
    assert whole.spec.image == "changed"
    assert (whole.spec.replicas, whole.spec.ports, whole.spec.routes) == (7, ports, [Route(path="/", weight=3)])


async def test_update_does_not_add_defaults(client, namespace):
    """A Service's defaults in our types would be claimed by an update that changed something else."""
    await client.create(ConfigMap(metadata=ObjectMeta(name="plain", namespace=namespace), data={"a": "1"}))
    before = await client.get(ConfigMap, f"{namespace}/plain")
    before.data["b"] = "2"
    after = await client.update(before)
    assert to_json(after).keys() == {"apiVersion", "kind", "metadata", "data"}


async def test_lists_in_pages(client, namespace):
    for number in range(7):
        labels = {"parity": "odd" if number % 2 else "even"}
        await client.create(ConfigMap(metadata=ObjectMeta(name=f"c{number}", namespace=namespace, labels=labels)))
    whole = await client.list(ConfigMap, namespace=namespace, page_size=3)
    assert [item.metadata.name for item in whole] == [f"c{number}" for number in range(7)]
    pages = [len(page) async for page in client.pages(ConfigMap, namespace=namespace, page_size=3)]
    assert pages == [3, 3, 1]
    odd = [
        item.metadata.name async for item in client.iterate(ConfigMap, namespace=namespace, labels={"parity": "odd"})
    ]
    assert odd == ["c1", "c3", "c5"]
    named = await client.list(ConfigMap, namespace=namespace, fields={"metadata.name": "c2"})
    assert len(named) == 1
    at_version = await client.list(
        ConfigMap, namespace=namespace, resource_version=whole.resource_version, match="Exact"
    )
    assert len(at_version) == 7


async def test_an_undecodable_object_spoils_nothing_but_itself(client, namespace, sites):
    class OtherSpec(Spec):
        image: int  # the server holds a string

    class OtherSite(Resource[OtherSpec, None], group=GROUP, version="v1", kind="Site", plural="sites"):
        pass

    globals()["OtherSpec"] = OtherSpec
    await client.create(site("text", namespace))
    listed = await client.list(OtherSite, namespace=namespace)
    assert listed.items == []
    (failure,) = listed.undecodable
    assert failure.key == Key(namespace, "text")
    assert "spec.image" in str(failure.error)


async def test_four_patches(client, namespace, sites):
    key = Key(namespace, "patched")
    await client.create(site("patched", namespace, replicas=2))
    merged = await client.patch(Site, key, MergePatch({"metadata": {"labels": {"a": "1", "b": "2"}}}))
    assert merged.metadata.labels == {"a": "1", "b": "2"}
    removed = await client.patch(Site, key, MergePatch({"metadata": {"labels": {"a": None}}}))
    assert removed.metadata.labels == {"b": "2"}
    tested = await client.patch(
        Site, key, JsonPatch.of(json_patch.test("/spec/replicas", 2), json_patch.replace("/spec/replicas", 5))
    )
    assert tested.spec.replicas == 5
    config = ConfigMap(metadata=ObjectMeta(name="strategic", namespace=namespace), data={"a": "1"})
    await client.create(config)
    strategic = await client.patch(ConfigMap, config.key, StrategicPatch({"data": {"b": "2"}}))
    assert strategic.data == {"a": "1", "b": "2"}


async def test_a_merge_patch_from_before_and_after(client, namespace, sites):
    made = await client.create(site("diff", namespace, replicas=2))
    before = copy.deepcopy(made)
    made.spec.replicas = 9
    made.metadata.labels = {"new": "yes"}
    after = await client.patch_from(before, made)
    assert (after.spec.replicas, after.metadata.labels) == (9, {"new": "yes"})
    unchanged = await client.patch_from(after, copy.deepcopy(after))
    assert unchanged.metadata.resource_version == after.metadata.resource_version
    stale = copy.deepcopy(before)
    stale.spec.replicas = 4
    with pytest.raises(Conflict):
        await client.patch_from(before, stale, lock=True)


async def test_apply_by_two_managers(client, namespace, sites):
    await client.apply(site("shared", namespace, replicas=2))
    with pytest.raises(Conflict) as refused:
        await client.apply(site("shared", namespace, replicas=5), field_manager="other")
    text = str(refused.value)
    assert text.startswith(f"apply Site {namespace}/shared: ")
    assert '.spec.replicas is owned by "tests"' in text
    assert "force=True" in text
    taken = await client.apply(site("shared", namespace, replicas=5), field_manager="other", force=True)
    assert taken.spec.replicas == 5


async def test_apply_takes_an_intent_not_a_state(client, namespace, sites):
    made = await client.apply(site("intent", namespace))
    with pytest.raises(NotAnIntent, match="read from the server"):
        await client.apply(made)


async def test_apply_needs_a_manager(api_server, namespace, sites):
    async with Client.connect(kubeconfig=api_server.kubeconfig) as unnamed:
        with pytest.raises(ValueError, match="field_manager"):
            await unnamed.apply(site("unnamed", namespace))


async def test_apply_with_an_owner(client, namespace, sites):
    owner = await client.create(site("owner", namespace))
    child = ConfigMap(metadata=ObjectMeta(name="child", namespace=namespace), data={"a": "b"})
    applied = await client.apply(child, owner=owner)
    (reference,) = applied.metadata.owner_references
    assert (reference.uid, reference.kind, reference.controller) == (owner.metadata.uid, "Site", True)
    assert child.metadata.owner_references is None


async def test_what_was_read_in_part_is_not_updated(client, namespace, sites):
    await client.create(site("part", namespace, replicas=3))
    listed = await client.metadata.list(Site, namespace=namespace, labels=None)
    (partial,) = [item for item in listed if item.metadata.name == "part"]
    assert partial.metadata.uid
    with pytest.raises(PartialObject, match="use patch or apply"):
        await client.update(partial)


async def test_create_or_update_says_what_it_did(client, namespace):
    def set_value(value):
        def mutate(config):
            config.data = {"value": value}

        return mutate

    config = ConfigMap(metadata=ObjectMeta(name="either", namespace=namespace))
    assert (await client.create_or_update(config, set_value("1"))).operation == "created"
    again = await client.create_or_update(config, set_value("1"))
    assert again.operation == "unchanged"
    updated = await client.create_or_update(config, set_value("2"))
    assert (updated.operation, updated.object.data) == ("updated", {"value": "2"})
    patched = await client.create_or_patch(config, set_value("3"))
    assert (patched.operation, patched.object.data) == ("updated", {"value": "3"})
    assert (await client.create_or_patch(config, set_value("3"))).operation == "unchanged"


class Meddling:
    """Lets another writer change the object just before each of the first patches."""

    def __init__(self, inner, meddle, times):
        self._inner, self._meddle, self._times = inner, meddle, times

    async def send(self, request, **options):
        if request.method == "PATCH" and self._times:
            self._times -= 1
            await self._meddle()
        return await self._inner.send(request, **options)

    async def close(self):
        """The other client closes the transport."""


@pytest.mark.parametrize(("lock", "seen"), [(True, "xy"), (False, "y")], ids=["locked", "unlocked"])
async def test_create_or_patch_with_a_lock_changes_only_what_it_saw(client, namespace, lock, seen):
    """Without a lock, the patch undoes what another writer did since the object was read."""
    config = ConfigMap(metadata=ObjectMeta(name=f"locked-{lock}".lower(), namespace=namespace), data={"value": ""})
    await client.create(config)

    async def meddle():
        await client.patch(ConfigMap, config.key, MergePatch({"data": {"value": "x"}}))

    def add(current):
        current.data["value"] += "y"

    patching = client.with_transport(lambda inner: Meddling(inner, meddle, 1))
    patched = await patching.create_or_patch(config, add, lock=lock)
    assert (patched.operation, patched.object.data) == ("updated", {"value": seen})


async def test_create_or_patch_with_a_lock_gives_up_with_a_conflict(client, namespace):
    config = ConfigMap(metadata=ObjectMeta(name="contested", namespace=namespace), data={"value": ""})
    await client.create(config)
    changes = 0

    async def meddle():
        nonlocal changes
        changes += 1
        await client.patch(ConfigMap, config.key, MergePatch({"data": {"other": str(changes)}}))

    def change(current):
        current.data["value"] = "mine"

    patching = client.with_transport(lambda inner: Meddling(inner, meddle, 100))
    with pytest.raises(Conflict, match=f"patch ConfigMap {namespace}/contested: .*the object has been modified"):
        await patching.create_or_patch(config, change, lock=True)
    assert (await client.get(ConfigMap, config.key)).data == {"value": "", "other": "5"}


async def test_save_writes_object_and_status_without_losing_either(client, namespace, sites):
    made = await client.create(site("saved", namespace))
    made.spec.replicas = 6
    made.status = SiteStatus(ready_replicas=4)
    saved = await client.save(made)
    assert saved.operation == "updated"
    read = await client.get(Site, f"{namespace}/saved")
    assert (read.spec.replicas, read.status.ready_replicas) == (6, 4)
    assert saved.object == read
    nothing = await client.save(read)
    assert nothing.operation == "unchanged"
    read.status.ready_replicas = 5
    only_status = await client.save(read)
    assert only_status.object.metadata.generation == read.metadata.generation
    assert (await client.get(Site, f"{namespace}/saved")).status.ready_replicas == 5


async def test_conflicts_are_retried_from_the_start(client, namespace, sites):
    await client.create(site("busy", namespace, replicas=0))
    attempts = 0

    async def raise_by_one():
        nonlocal attempts
        attempts += 1
        current = await client.get(Site, f"{namespace}/busy")
        if attempts == 1:
            other = copy.deepcopy(current)
            other.spec.replicas += 10
            await client.update(other)
        current.spec.replicas += 1
        return await client.update(current)

    final = await retry_on_conflict(raise_by_one)
    assert (final.spec.replicas, attempts) == (11, 2)


async def test_deleting_this_object_spares_its_successor(client, namespace, sites):
    first = await client.create(site("phoenix", namespace))
    await client.delete(Site, f"{namespace}/phoenix")
    second = await client.create(site("phoenix", namespace))
    with pytest.raises(Conflict):
        await client.delete(first)
    assert (await client.get(Site, f"{namespace}/phoenix")).metadata.uid == second.metadata.uid


async def test_a_deletion_says_whether_the_object_is_gone(client, namespace, sites):
    """Some kinds are gone with a Status, some with their last state; some are marked, and wait."""
    meta = ObjectMeta(name="web", namespace=namespace)
    ports = [ServicePort(port=80)]
    for obj in (
        site("web", namespace),
        ConfigMap(metadata=meta),
        Service(metadata=meta, spec=ServiceSpec(ports=ports)),
        Pod(metadata=meta, spec=PodSpec(containers=[Container(name="web", image="nginx")])),
    ):
        made = await client.create(obj)
        assert await client.delete(made, dry_run=True) is None
        assert await client.delete(made) is None, made.kind
        with pytest.raises(NotFound):
            await client.get(type(obj), made.key)
    held = site("held", namespace)
    held.metadata.finalizers = ["test.dev/hold"]
    await client.create(held)
    for _ in range(2):
        marked = await client.delete(Site, f"{namespace}/held")
        assert isinstance(marked, Site)
        assert marked.metadata.deletion_timestamp
        assert (await client.get(Site, marked.key)).metadata.resource_version == marked.metadata.resource_version
    untyped = await client.delete(SITE, f"{namespace}/held")
    assert isinstance(untyped, Unstructured)
    await client.patch(Site, f"{namespace}/held", MergePatch({"metadata": {"finalizers": None}}))
    made = await client.create(Namespace(metadata=ObjectMeta(generate_name="test-terminating-")))
    terminating = await client.delete(made)
    assert terminating is not None
    assert terminating.status.phase == "Terminating"


async def test_what_may_be_missing_is_no_error(client, namespace, sites):
    key = Key(namespace, "home")
    assert await client.find(Site, key) is None
    assert await client.find(SITE, key) is None
    assert await client.metadata.find(Site, key) is None
    assert await client.delete(Site, key, missing_ok=True) is None
    with pytest.raises(NotFound):
        await client.delete(Site, key)
    made = await client.create(site("home", namespace))
    assert await client.find(Site, key) == made
    assert (await client.find(SITE, key)).uid == (await client.metadata.find(Site, key)).uid == made.uid
    assert await client.delete(made, missing_ok=True) is None
    assert await client.delete(made, missing_ok=True) is None
    successor = await client.create(site("home", namespace))
    with pytest.raises(Conflict):
        await client.delete(made, missing_ok=True)
    assert (await client.find(Site, key)).uid == successor.uid
    with pytest.raises(KindNotServed):
        await client.find(Kind("nowhere.dev/v1", "Nothing"), key)
    with pytest.raises(KindNotServed):
        await client.delete(Kind("nowhere.dev/v1", "Nothing"), key, missing_ok=True)


async def test_an_object_knows_what_it_is(client, namespace, sites):
    new = site("home", namespace)
    new.metadata.finalizers = ["test.dev/hold"]
    assert (new.uid, new.generation, new.deleting) == ("", 0, False)
    made = await client.create(new)
    assert (made.uid, made.generation, made.deleting) == (made.metadata.uid, 1, False)
    untyped = await client.get(SITE, made.key)
    assert (untyped.uid, untyped.generation, untyped.deleting) == (made.uid, 1, False)
    assert (await client.delete(made)).deleting
    assert (await client.get(SITE, made.key)).deleting
    await client.patch(Site, made.key, MergePatch({"metadata": {"finalizers": None}}))
    assert (Unstructured({}).uid, Unstructured({}).generation, Unstructured({}).deleting) == ("", 0, False)


async def test_what_is_created_may_have_an_owner(client, namespace, sites):
    owner = await client.create(site("owner", namespace))
    child = ConfigMap(metadata=ObjectMeta(generate_name="child-", namespace=namespace))
    made = await client.create(child, owner=owner)
    (reference,) = made.metadata.owner_references
    assert (reference.uid, reference.controller) == (owner.uid, True)
    assert child.metadata.owner_references is None


async def test_delete_collection_by_label(client, namespace):
    for name, color in (("a", "red"), ("b", "blue"), ("c", "red")):
        await client.create(ConfigMap(metadata=ObjectMeta(name=name, namespace=namespace, labels={"color": color})))
    await client.delete_collection(ConfigMap, namespace=namespace, labels={"color": "red"})
    assert [item.metadata.name for item in await client.list(ConfigMap, namespace=namespace)] == ["b"]


async def test_dry_run_persists_nothing(client, namespace, sites):
    tried = await client.create(site("ghost", namespace), dry_run=True)
    assert tried.metadata.uid
    with pytest.raises(NotFound):
        await client.get(Site, f"{namespace}/ghost")


async def test_subresources(client, namespace, sites):
    labels = {"app": "web"}
    template = PodTemplateSpec(
        metadata=ObjectMeta(labels=labels), spec=PodSpec(containers=[Container(name="web", image="nginx")])
    )
    spec = DeploymentSpec(replicas=1, selector=LabelSelector(match_labels=labels), template=template)
    await client.create(Deployment(metadata=ObjectMeta(name="web", namespace=namespace), spec=spec))
    key = Key(namespace, "web")
    scale = await client.get_subresource(Deployment, key, "scale", returns=Scale)
    assert scale.spec.replicas == 1
    scale.spec.replicas = 2
    assert (await client.update_subresource(Deployment, key, "scale", scale)).spec.replicas == 2
    patch = MergePatch({"spec": {"replicas": 3}})
    assert (await client.patch_subresource(Deployment, key, "scale", patch, returns=Scale)).spec.replicas == 3
    assert (await client.get(Deployment, key)).spec.replicas == 3


async def test_a_token_is_not_shown(client, namespace):
    account = await client.create(ServiceAccount(metadata=ObjectMeta(name="robot", namespace=namespace)))
    request = TokenRequest(metadata=ObjectMeta(), spec=TokenRequestSpec(audiences=["here"]))
    token = await client.create_subresource(ServiceAccount, account.key, "token", request, returns=TokenRequest)
    assert token.status.token
    assert token.status.token not in repr(token)


async def test_a_binding_answers_nothing_but_that_it_was_done(client, namespace):
    await client.create(ServiceAccount(metadata=ObjectMeta(name="default", namespace=namespace)))
    pod = Pod(
        metadata=ObjectMeta(name="web", namespace=namespace),
        spec=PodSpec(containers=[Container(name="web", image="nginx")]),
    )
    made = await client.create(pod)
    binding = Binding(metadata=ObjectMeta(name="web"), target=ObjectReference(kind="Node", name="worker"))
    assert await client.create_subresource(Pod, made.key, "binding", binding, returns=None) is None
    assert (await client.get(Pod, made.key)).spec.node_name == "worker"
    with pytest.raises(Conflict):
        await client.create_subresource(Pod, made.key, "binding", binding, returns=None)


async def test_the_servers_warnings_are_surfaced(api_server, namespace, sites):
    seen = []
    async with Client.connect(kubeconfig=api_server.kubeconfig, on_warning=seen.append) as warned:
        obj = Unstructured(
            {
                "apiVersion": f"{GROUP}/v1",
                "kind": "Site",
                "metadata": {"name": "odd", "namespace": namespace},
                "spec": {"image": "a", "color": "red"},
            }
        )
        await warned.create(obj, field_validation="Warn")
        assert 'unknown field "spec.color"' in str(seen[0])
        obj["metadata"]["name"] = "strict"
        with pytest.raises(Exception, match="color"):
            await warned.create(obj, field_validation="Strict")


@pytest.mark.parametrize(
    "patch",
    [
        MergePatch({"status": {"readyReplicas": 2}}),
        JsonPatch.of(json_patch.add("/status", {"readyReplicas": 2})),
    ],
    ids=["merge", "json"],
)
async def test_a_status_that_a_patch_of_the_object_would_lose_is_warned_of(api_server, namespace, sites, patch):
    seen = []
    async with Client.connect(kubeconfig=api_server.kubeconfig, on_warning=seen.append) as warned:
        made = await warned.create(site("lost", namespace))
        patched = await warned.patch(Site, made.key, patch)
        assert patched.status is None
        assert [each.text for each in seen] == [STATUS_IGNORED]
        patched = await warned.patch(Site, made.key, patch, subresource="status")
        assert patched.status.ready_replicas == 2
        assert len(seen) == 1


async def test_a_status_that_apply_and_patch_from_would_lose_is_warned_of(api_server, namespace, sites):
    seen = []
    connecting = Client.connect(kubeconfig=api_server.kubeconfig, field_manager="lost", on_warning=seen.append)
    async with connecting as warned:
        intent = site("lost", namespace)
        intent.status = SiteStatus(ready_replicas=2)
        made = await warned.apply(intent)
        assert [each.text for each in seen] == [STATUS_IGNORED]
        made.status = SiteStatus(ready_replicas=3)
        made = await warned.patch_from(made, made)
        assert made.status is None
        assert [each.text for each in seen] == [STATUS_IGNORED] * 2
        # a part without a status has none to lose
        part = Site.only(metadata=ObjectMeta(name="lost", namespace=namespace), spec=SiteSpec.only(replicas=3))
        assert (await warned.apply(part, field_manager="scaler", force=True)).spec.replicas == 3
        assert len(seen) == 2


async def test_a_call_with_the_wrong_thing_says_what_to_write(client, namespace, sites):
    made = await client.create(site("home", namespace))
    for mistake, words in (
        (client.get(made, made.key), f"expected a kind, got the object Site {namespace}/home; write Site"),
        (client.list(made), f"expected a kind, got the object Site {namespace}/home; write Site"),
        (client.install(made), f"expected a kind, got the object Site {namespace}/home; write Site"),
        (client.install(SiteSpec), "'SiteSpec' is not a kind"),
        (client.get(Site, made), "write site.key"),
        (
            client.get(Site, ReconcileRequest(made.key)),
            f"Site: Request {namespace}/home is not a key; write request.key",
        ),
        (
            client.create(replace(made, metadata={"name": "x"})),
            'Site: metadata is a dict; write metadata=ObjectMeta(name="...")',
        ),
        (client.list(Site, labels={"team": None}), '"!team" for objects without it, "team" for objects with any value'),
        (client.list(Site, labels={"team": ["a", "b"]}), 'write "team in (a,b)"'),
        (client.list(Site, labels={"matchLabels": {"team": "a"}}), "write Selector.from_label_selector({...})"),
        (client.list(Site, labels={"canary": True}), 'write "true"'),
    ):
        with pytest.raises(TypeError, match=re.escape(words)):
            await mistake


async def test_our_own_constraints_are_checked_before_sending(client, namespace, sites):
    with pytest.raises(Invalid, match=r"spec\.replicas"):
        await client.create(site("many", namespace, replicas=51))


async def test_errors_read_well(client, namespace, sites):
    await client.create(site("twice", namespace))
    with pytest.raises(AlreadyExists, match=f"create Site {namespace}/twice"):
        await client.create(site("twice", namespace))
    with pytest.raises(KindNotServed, match="steersman generate crds"):
        await client.get(Kind("nowhere.example.com/v1", "Thing"), "x")


class Unserved(Resource[Spec, None], group="nowhere.example.com", version="v1"):
    """Never installed."""


async def test_a_missing_definition_says_what_to_do(client):
    with pytest.raises(KindNotServed, match=r"kind Unserved .* is not served by https://"):
        await client.list(Unserved)


@pytest.mark.parametrize("labels", [5, True, ["app=web"], ("app", "web"), {"app"}, b"app=web"])
async def test_labels_that_are_no_selector_are_refused(client, namespace, labels):
    """In a cached list, a list of labels once selected every object."""
    with pytest.raises(TypeError, match="is not a selector"):
        await client.list(ConfigMap, namespace=namespace, labels=labels)
    with pytest.raises(TypeError, match="is not a selector"):
        await client.delete_collection(ConfigMap, namespace=namespace, labels=labels)
    async with Cache(client, kinds={ConfigMap: KindOptions(namespaces=(namespace,))}) as cache:
        with pytest.raises(TypeError, match="are not labels"):
            await cache.reader().list(ConfigMap, namespace=namespace, labels=labels)


async def test_a_key_of_three_parts_is_refused(client):
    with pytest.raises(TypeError, match=r'is not a key; write "name", "namespace/name"'):
        await client.get(ConfigMap, ("a", "b", "c"))


async def test_another_version_of_a_served_kind_is_named(client, sites):
    """A typo in the version, or an operator that is newer than its CRD: the CRD is there, and the error says so."""
    served = rf"it serves Site as {re.escape(GROUP)}/v1: use that version, or serve v9 in the CRD"
    newer = Kind(f"{GROUP}/v9", "Site")
    with pytest.raises(KindNotServed, match=served):
        await client.get(newer, "x")
    async with Cache(client) as cache:
        with pytest.raises(KindNotServed, match=served):
            await cache.reader().get(newer, "x")


async def test_metadata_only(client, namespace):
    pod = Pod(
        metadata=ObjectMeta(name="p", namespace=namespace, labels={"a": "b"}),
        spec=PodSpec(containers=[Container(name="c", image="i")]),
    )
    await client.create(pod)
    read = await client.metadata.get(Pod, pod.key)
    assert read.metadata.labels == {"a": "b"}
    assert (await client.metadata.list(Pod, namespace=namespace)).items[0].metadata.name == "p"


async def test_several_managers_apply_parts_of_one_object(client, namespace, sites):
    """An intent need not be whole: what it leaves out belongs to another manager."""
    await client.apply(site("parts", namespace, replicas=2), field_manager="owner")
    part = Site.only(metadata=ObjectMeta(name="parts", namespace=namespace), spec=SiteSpec.only(mode="dynamic"))
    applied = await client.apply(part, field_manager="mode-manager", force=True)
    assert (applied.spec.mode, applied.spec.replicas, applied.spec.image) == ("dynamic", 2, "nginx:1.27")
    status = Site.only(metadata=ObjectMeta(name="parts", namespace=namespace), status=SiteStatus(ready_replicas=2))
    reported = await client.apply(status, field_manager="status-manager", subresource="status")
    assert reported.status.ready_replicas == 2


async def test_a_status_that_the_server_would_ignore_is_warned_of(api_server, namespace, sites):
    seen = []
    async with api_server.client(field_manager="tests", on_warning=seen.append) as client:
        made = await client.create(site("warned", namespace))
        made.status = SiteStatus(ready_replicas=1)
        await client.update(made)
        assert f"update Site {namespace}/warned: the server ignores the status here" in str(seen.pop())
        read = await client.get(Site, f"{namespace}/warned")
        read.status = SiteStatus(ready_replicas=1)
        read = (await client.save(read)).object
        read.spec.replicas = 3
        await client.update(read)
        assert seen == []


async def test_mistakes_are_named(client, namespace, sites):
    made = await client.create(site("named", namespace))
    with pytest.raises(NotNew, match="the object already exists"):
        await client.create(made)
    with pytest.raises(TypeError, match="is not a key"):
        await client.get(Site, None)
    with pytest.raises(TypeError, match="write MergePatch"):
        await client.patch(Site, made.key, {"spec": {}})
    with pytest.raises(TypeError, match="Unstructured"):
        await client.list("Site")
    with pytest.raises(Invalid, match="unknown field") as refused:
        await client.patch(Site, made.key, MergePatch({"spec": {"min_replicas": 2}}), field_validation="Strict")
    assert "creationTimestamp" not in str(refused.value)  # the server repeats the whole object: it may be a Secret


async def test_a_misspelled_option_is_refused(api_server):
    with pytest.raises(TypeError, match="unknown client option namespce; the options are"):
        async with api_server.client(namespce="x"):
            pass


async def test_an_option_that_a_verb_does_not_have_is_an_error(client):
    """Ignored, a misspelled selector would select everything, and a limit would not limit."""
    with pytest.raises(TypeError, match=r"watch\(\) has no option 'page_size'"):
        async with client.watch(ConfigMap, page_size=1):
            pass
    reconciling = ReconcileClient(reconcile_pipeline(client, ()))
    for reads in (client, client.metadata, client.live, reconciling, reconciling.metadata):
        with pytest.raises(TypeError, match=r"^list\(\) has no option 'limit'; page_size is the number of objects per"):
            await reads.list(ConfigMap, limit=1)
        with pytest.raises(TypeError, match=r"^pages\(\) has no option 'lables'; its options are .*labels"):
            reads.pages(ConfigMap, lables={"a": "b"})
        with pytest.raises(TypeError, match=r"^iterate\(\) has no option 'lables'; its options are .*labels"):
            reads.iterate(ConfigMap, lables={"a": "b"})
        for name in ("page_size", "max_bytes", "limit"):
            with pytest.raises(TypeError, match=rf"first\(\) has no option '{name}'; its options are fields, labels"):
                await reads.first(ConfigMap, **{name: 1})
        with pytest.raises(TypeError, match=r"exists\(\) has no option 'lables'; its options are .*labels"):
            await reads.exists(ConfigMap, lables={"a": "b"})
