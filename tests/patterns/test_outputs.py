"""Declaring children: pure, and every likely mistake is answered with what to write instead, word for word."""

import pytest

from samples.site import GROUP, Site, site
from steersman import Kind, ObjectMeta, Resource, Spec, Unstructured
from steersman.errors import NotAnIntent, OwnershipError
from steersman.kinds.core_v1 import ConfigMap, Namespace, NamespaceStatus, Secret, ServiceAccount
from steersman.objects import Key, decode, encode, set_owner, to_json
from steersman.patterns import Children, Outputs, child


class FleetSpec(Spec):
    size: int = 1


class Fleet(Resource[FleetSpec, None], group=GROUP, version="v1", scope="Cluster"):
    """Something that lives in no namespace."""


HOME = site("home", "default")
PAIR = (ConfigMap, Secret)


def outputs(*kinds, owner=HOME, phase="", **options):
    return Outputs(owner, Children(type(owner), kinds or PAIR, where="generates(Site)", **options), state=phase)


def page(name="page", namespace=None, **fields):
    return ConfigMap(metadata=ObjectMeta(name=name, namespace=namespace), **fields)


def said(expected, call, *args, **options):
    with pytest.raises((TypeError, ValueError, NotAnIntent, RuntimeError)) as caught:
        call(*args, **options)
    assert str(caught.value) == expected


def test_a_state_can_be_tested_without_a_server():
    out = outputs()
    first = out.apply(page())
    given = page("second")
    assert out.apply(given, after=first, wait=False) is given
    assert [(str(each.identity), each.depth, each.bond) for each in out.declared] == [
        ("ConfigMap default/page", 1, "reference"),
        ("ConfigMap default/second", 2, "reference"),
    ]
    assert given == page("second")


def test_where_a_child_lives_and_by_what_it_is_held():
    out = outputs(ConfigMap, Namespace, child(Secret, across_namespaces=True), Kind("example.com/v1", "Widget"))
    out.apply(page())
    out.apply(Namespace(metadata=ObjectMeta(name="apart")))
    out.apply(Secret(metadata=ObjectMeta(name="near")))
    out.apply(Secret(metadata=ObjectMeta(name="far", namespace="elsewhere")))
    out.apply(Unstructured({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}))
    out.apply(Secret(metadata=ObjectMeta(name="shared", namespace="elsewhere")), owner=False)
    assert [(each.identity.key, each.bond) for each in out.declared] == [
        (Key("default", "page"), "reference"),
        (Key("", "apart"), "label"),
        (Key("default", "near"), "reference"),
        (Key("elsewhere", "far"), "label"),
        (Key("default", "w"), "reference"),
        (Key("elsewhere", "shared"), "none"),
    ]
    fleet = outputs(ConfigMap, Namespace, owner=Fleet(metadata=ObjectMeta(name="all"), spec=FleetSpec()))
    fleet.apply(page("page", "anywhere"))
    fleet.apply(Namespace(metadata=ObjectMeta(name="apart")))
    assert [each.bond for each in fleet.declared] == ["reference", "reference"]


def test_a_kind_that_was_not_declared():
    said(
        (
            "generates(Site): out.apply(ServiceAccount default/web): ServiceAccount is not in"
            " children=(ConfigMap, Secret); add it, so that Steersman watches and prunes it"
        ),
        outputs().apply,
        ServiceAccount(metadata=ObjectMeta(name="web", namespace="default")),
    )
    said(
        (
            "generates(Site): out.apply(Secret default/token): Secret is in retired=, which is for kinds"
            " that are no longer declared; move it to children="
        ),
        outputs(ConfigMap, retired=(Secret,)).apply,
        Secret(metadata=ObjectMeta(name="token", namespace="default")),
    )


def test_what_is_no_object():
    said(
        ("generates(Site): out.apply(ConfigMap): that is a class; pass an object: ConfigMap(metadata=..., spec=...)"),
        outputs().apply,
        ConfigMap,
    )
    said("generates(Site): out.apply(None): that is not an object; build the child and pass it", outputs().apply, None)


def test_a_child_twice():
    out = outputs(phase="storage")
    out.apply(page())
    said(
        (
            "generates(Site), storage: out.apply(ConfigMap default/page): it was already declared in this"
            " reconcile; declare each child once, with all of its fields"
        ),
        out.apply,
        page(namespace="default"),
    )


def test_a_child_twice_by_two_states():
    taken, children = {}, Children(Site, PAIR, where="Cluster")
    Outputs(HOME, children, state="storage", taken=taken).apply(page())
    said(
        (
            "Cluster, primary: out.apply(ConfigMap default/page): it was already declared in this"
            " reconcile by storage; declare each child once, with all of its fields"
        ),
        Outputs(HOME, children, state="primary", taken=taken).apply,
        page(),
    )


def test_a_child_that_was_read():
    said(
        (
            "generates(Site): out.apply(ConfigMap default/page): it was read from the server, and"
            " applying it would claim all of its fields; build a new ConfigMap with the fields that you"
            " want to set"
        ),
        outputs().apply,
        decode(ConfigMap, encode(page())),
    )


def test_a_child_in_another_namespace():
    said(
        (
            "generates(Site): out.apply(ConfigMap elsewhere/page): Site default/home cannot own it by"
            " reference from another namespace; if you intend that, write children=(child(ConfigMap,"
            " across_namespaces=True), ...): Steersman then uses a label and a finalizer"
        ),
        outputs().apply,
        page("page", "elsewhere"),
    )
    said(
        (
            "generates(Site): out.apply(ConfigMap elsewhere/page): Site default/home would write to"
            " another namespace, in which its author may have no permissions; if you intend that, write"
            " children=(child(ConfigMap, across_namespaces=True), ...)"
        ),
        lambda: outputs().apply(page("page", "elsewhere"), owner=False),
    )
    shared = outputs(child(ConfigMap, across_namespaces=True))
    shared.apply(page("page", "elsewhere"), owner=False)
    assert [each.bond for each in shared.declared] == ["none"]
    said(
        (
            "generates(Site): out.apply(ConfigMap page): it needs a namespace, because Fleet all has"
            " none; write metadata=ObjectMeta(name=..., namespace=...)"
        ),
        outputs(ConfigMap, owner=Fleet(metadata=ObjectMeta(name="all"), spec=FleetSpec())).apply,
        page(),
    )


def test_a_child_without_a_name():
    said(
        "generates(Site): out.apply(ConfigMap): it has no name; write metadata=ObjectMeta(name=...)",
        outputs().apply,
        ConfigMap(metadata=ObjectMeta()),
    )
    said(
        (
            "generates(Site): out.apply(ConfigMap): it has a generated name, so every reconcile would"
            ' create another one; set a name, such as f"{site.key.name}-configmap"'
        ),
        outputs().apply,
        ConfigMap(metadata=ObjectMeta(generate_name="page-")),
    )


def test_an_owner_without_a_uid():
    said(
        (
            "generates(Site): Site default/home has no uid, so it cannot own children; pass the object"
            " that was read from the server"
        ),
        lambda: Outputs(HOME, Children(Site, PAIR, where="generates(Site)"), ctx=object()),
    )


def test_what_comes_after_what_was_not_declared():
    said(
        (
            "generates(Site): out.apply(ConfigMap default/page): after=ConfigMap other must be declared"
            " earlier in this state: first = out.apply(...), then out.apply(second, after=first)"
        ),
        outputs().apply,
        page(),
        after=page("other"),
    )


def test_options_that_are_none_and_those_that_contradict_each_other():
    where = "generates(Site): out.apply(ConfigMap default/page): "
    said(where + "there is no option onwer=; did you mean owner=?", outputs().apply, page(), onwer=False)
    said(
        where + "how='patch' is not one of apply, merge, update, replace, create", outputs().apply, page(), how="patch"
    )
    said(
        where + 'how="create" never changes an existing object, so recreate= has no effect; remove it',
        outputs().apply,
        page(),
        how="create",
        recreate=True,
    )
    said(
        where + 'how="replace" removes every undeclared field, so remove= has no effect; remove it',
        outputs().apply,
        page(),
        how="replace",
        remove=("data.text",),
    )
    said(
        where
        + 'how="replace" overwrites the fields of others, but owner=False shares the object; use only one of them',
        outputs().apply,
        page(),
        how="replace",
        owner=False,
    )
    said(
        where + 'how="merge" does not write a status; remove status= or how=',
        outputs().apply,
        page(),
        how="merge",
        status=True,
    )
    said(
        where + 'remove= is a list of fields; write remove=("data.text",)',
        outputs().apply,
        page(),
        remove="data.text",
    )
    said(
        where + "adopt=True takes an object over, but owner=False shares it; use only one of them",
        outputs().apply,
        page(),
        adopt=True,
        owner=False,
    )


def test_a_status_that_would_stay_unseen():
    said(
        (
            "generates(Site): out.apply(Namespace web): its status is set, but the server ignores it"
            " here; write out.apply(..., status=True) to apply it to the status subresource, or do not set"
            " it"
        ),
        outputs(Namespace).apply,
        Namespace(metadata=ObjectMeta(name="web"), status=NamespaceStatus(phase="Active")),
    )


@pytest.mark.parametrize("typed", [True, False], ids=["typed", "untyped"])
def test_a_child_that_names_another_controller(typed):
    theirs = page(namespace="default") if typed else Unstructured(to_json(page(namespace="default")))
    owner = site("other", "default")
    owner.metadata.uid = "u"
    set_owner(theirs, owner)
    with pytest.raises(OwnershipError) as caught:
        outputs().apply(theirs)
    assert str(caught.value) == (
        "generates(Site): out.apply(ConfigMap default/page): its ownerReferences name a controller or"
        " its owner, but Steersman writes the reference to Site default/home; remove them, or write"
        " children=(child(ConfigMap, owner_references=False), ...) to set all references yourself"
    )


def test_outputs_without_a_context():
    said(
        "these outputs have no context, as in a test without a server; pass one: Outputs(owner, children, ctx=ctx)",
        lambda: outputs().ctx,
    )


def test_mistakes_in_what_is_declared_to_be_produced():
    said(
        "generates(Site): children=ConfigMap is one kind; write children=(ConfigMap,)",
        Children,
        Site,
        ConfigMap,
        where="generates(Site)",
    )
    said("generates(Site): ConfigMap is listed twice in children=; remove one", outputs, ConfigMap, ConfigMap)
    said(
        (
            "generates(Site): ConfigMap is in both children= and retired=; retired= is for kinds that are"
            " no longer declared, so remove it from one of them"
        ),
        outputs,
        ConfigMap,
        retired=(ConfigMap,),
    )
    said(
        (
            "generates(Site): example.com/v1 Widget and example.com/v2 Widget are two versions of one"
            " kind; list only the version that you build"
        ),
        outputs,
        Kind("example.com/v1", "Widget"),
        Kind("example.com/v2", "Widget"),
    )
    said(
        'generates(Site): children: \'pods\' is not a kind; pass a class, or Kind("group/version", "Name") if there is none',
        outputs,
        "pods",
    )


def test_when_a_finalizer_is_needed():
    assert not Children(Site, PAIR, where="x").needs_finalizer
    assert Children(Site, (Namespace,), where="x").needs_finalizer
    assert Children(Site, (child(ConfigMap, across_namespaces=True),), where="x").needs_finalizer
    assert Children(Site, PAIR, retired=(Namespace,), where="x").needs_finalizer
    assert not Children(Fleet, (ConfigMap, Namespace), where="x").needs_finalizer
