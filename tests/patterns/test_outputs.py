"""Declaring children: pure, and every likely mistake is answered with what to write instead, word for word."""

import pytest

from samples.site import GROUP, Site, site
from steersman import Kind, ObjectMeta, Resource, Spec, Unstructured
from steersman.errors import NotAnIntent, OwnershipError
from steersman.kinds.core_v1 import ConfigMap, Namespace, NamespaceStatus, Secret, ServiceAccount
from steersman.objects import Key, decode, encode, set_owner
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
        "generates(Site): out.apply(ServiceAccount default/web): ServiceAccount is not among children=(ConfigMap, Secret); add it there, so that it "
        "is watched and pruned",
        outputs().apply,
        ServiceAccount(metadata=ObjectMeta(name="web", namespace="default")),
    )
    said(
        "generates(Site): out.apply(Secret default/token): Secret is in retired=, which names kinds that are no longer "
        "produced; move it to children=",
        outputs(ConfigMap, retired=(Secret,)).apply,
        Secret(metadata=ObjectMeta(name="token", namespace="default")),
    )


def test_what_is_no_object():
    said(
        "generates(Site): out.apply(ConfigMap): that is a class; give an object, ConfigMap(metadata=..., spec=...)",
        outputs().apply,
        ConfigMap,
    )
    said("generates(Site): out.apply(None): that is no object; build the child and give that", outputs().apply, None)


def test_a_child_twice():
    out = outputs(phase="storage")
    out.apply(page())
    said(
        "generates(Site), storage: out.apply(ConfigMap default/page): it was declared already in this pass; declare each child "
        "once, with all that it is to hold",
        out.apply,
        page(namespace="default"),
    )


def test_a_child_twice_by_two_states():
    taken, children = {}, Children(Site, PAIR, where="Cluster")
    Outputs(HOME, children, state="storage", taken=taken).apply(page())
    said(
        "Cluster, primary: out.apply(ConfigMap default/page): it was declared already in this pass by storage; declare each "
        "child once, with all that it is to hold",
        Outputs(HOME, children, state="primary", taken=taken).apply,
        page(),
    )


def test_a_child_that_was_read():
    said(
        "generates(Site): out.apply(ConfigMap default/page): it was read from the server, and applying it would claim every "
        "field of it; build the ConfigMap anew, with the fields that you mean",
        outputs().apply,
        decode(ConfigMap, encode(page())),
    )


def test_a_child_in_another_namespace():
    said(
        "generates(Site): out.apply(ConfigMap elsewhere/page): Site default/home cannot own it by reference from another "
        "namespace; if it is meant, write children=(child(ConfigMap, across_namespaces=True), ...), which holds it by a label "
        "and a finalizer",
        outputs().apply,
        page("page", "elsewhere"),
    )
    said(
        "generates(Site): out.apply(ConfigMap elsewhere/page): Site default/home would write to another namespace, which its "
        "author may have no rights in; if it is meant, write children=(child(ConfigMap, across_namespaces=True), ...)",
        lambda: outputs().apply(page("page", "elsewhere"), owner=False),
    )
    shared = outputs(child(ConfigMap, across_namespaces=True))
    shared.apply(page("page", "elsewhere"), owner=False)
    assert [each.bond for each in shared.declared] == ["none"]
    said(
        "generates(Site): out.apply(ConfigMap page): in which namespace? Fleet all lives in none, so write "
        "metadata=ObjectMeta(name=..., namespace=...)",
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
        "generates(Site): out.apply(ConfigMap): it has a generated name, so that every pass would make another one; give it a "
        'name of its own, such as f"{site.key.name}-configmap"',
        outputs().apply,
        ConfigMap(metadata=ObjectMeta(generate_name="page-")),
    )


def test_an_owner_without_a_uid():
    said(
        "generates(Site): Site default/home has no uid, so nothing can belong to it; give the object that was read from the "
        "server, not one that was built",
        lambda: Outputs(HOME, Children(Site, PAIR, where="generates(Site)"), ctx=object()),
    )


def test_what_comes_after_what_was_not_declared():
    said(
        "generates(Site): out.apply(ConfigMap default/page): after=ConfigMap other was not declared before it in this state; "
        "declare that first, first = out.apply(...), and name it: out.apply(second, after=first)",
        outputs().apply,
        page(),
        after=page("other"),
    )


def test_options_that_are_none_and_those_that_contradict_each_other():
    where = "generates(Site): out.apply(ConfigMap default/page): "
    said(where + "there is no option onwer=; did you mean owner=?", outputs().apply, page(), onwer=False)
    said(where + "how='patch' is none of apply, merge, update, create", outputs().apply, page(), how="patch")
    said(
        where + 'how="create" never changes what is there, so recreate= says nothing; leave it out',
        outputs().apply,
        page(),
        how="create",
        recreate=True,
    )
    said(
        where + 'how="merge" writes no status; leave status= or how= out',
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
        where + "adopt=True takes an object over, and owner=False shares it; use one of them",
        outputs().apply,
        page(),
        adopt=True,
        owner=False,
    )


def test_a_status_that_nobody_would_see():
    said(
        "generates(Site): out.apply(Namespace web): its status is set, which the server ignores here; write "
        "out.apply(..., status=True) to apply it to the status subresource, or leave it out",
        outputs(Namespace).apply,
        Namespace(metadata=ObjectMeta(name="web"), status=NamespaceStatus(phase="Active")),
    )


def test_a_child_that_names_another_controller():
    theirs = page(namespace="default")
    owner = site("other", "default")
    owner.metadata.uid = "u"
    set_owner(theirs, owner)
    with pytest.raises(OwnershipError) as caught:
        outputs().apply(theirs)
    assert str(caught.value) == (
        "generates(Site): out.apply(ConfigMap default/page): its ownerReferences name a controller, or its owner, and Steersman "
        "writes the reference to Site default/home; leave them out, or write "
        "children=(child(ConfigMap, owner_references=False), ...), and the references are yours"
    )


def test_outputs_without_a_context():
    said(
        "these outputs were made without a context, as for a test that needs no server; give them one: "
        "Outputs(owner, children, ctx=ctx)",
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
        "generates(Site): ConfigMap is in children= and in retired=, which names kinds that are no longer produced; take it out "
        "of one of them",
        outputs,
        ConfigMap,
        retired=(ConfigMap,),
    )
    said(
        "generates(Site): example.com/v1 Widget and example.com/v2 Widget are the same objects in two versions; name the one "
        "that you build",
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
