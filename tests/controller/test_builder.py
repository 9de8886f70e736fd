"""What can be said of a controller, and what is refused with what to write instead."""

import re

import pytest

from samples.site import Site, site
from steersman.controller import ChannelSource, Done, Reconciler, controller, generation_changed, owners_through, when
from steersman.kinds.apps_v1 import Deployment, ReplicaSet
from steersman.kinds.core_v1 import ConfigMap, Namespace, Pod, Secret
from steersman.objects import Key, Kind

WIDGET = Kind("example.com/v1", "Widget")


class SiteReconciler(Reconciler[Site]):
    async def reconcile(self, ctx, request):
        return Done()


class PodReconciler(Reconciler[Pod]):
    async def reconcile(self, ctx, request):
        return Done()


class Blocking:
    def reconcile(self, ctx, request):
        return Done()


class Forgetful:
    async def reconcile(self, ctx):
        return Done()


async def reconcile_site(ctx, request):
    return Done()


def plain(ctx, request):
    return Done()


def sites_using(secret):
    return [Key("default", "web")]


async def asks_first(secret):
    return []


def three(a, b, c):
    return []


def test_a_plan_says_everything_that_is_watched():
    source = ChannelSource("world")
    plan = (
        controller(Site)
        .when(generation_changed())
        .owns(Deployment)
        .owns(ConfigMap, metadata_only=True)
        .watches(Secret, map=sites_using, when=when(lambda event: True))
        .watches(Pod, map=owners_through(ReplicaSet, Deployment), metadata_only=True)
        .on(source)
        .options(concurrency=7, timeout=12.0)
        .run_with(SiteReconciler())
    )
    assert plan.name == "site"
    assert plan.kinds() == {Site: False, Deployment: False, ConfigMap: True, Secret: False, Pod: True, ReplicaSet: True}
    assert plan.sources == (source,)
    assert (plan.options.concurrency, plan.options.timeout) == (7, 12.0)


def test_the_plan_is_handed_to_who_asked_for_it():
    plans = []
    plan = controller(Site, name="sites", register=plans.append).run_with(reconcile_site)
    assert plans == [plan]
    assert plan.name == "sites"


def test_a_kind_without_a_class_can_be_reconciled():
    plan = controller(WIDGET, namespaced=True).owns(ConfigMap).run_with(reconcile_site)
    assert plan.kinds() == {WIDGET: False, ConfigMap: False}


def refusals():
    yield lambda: controller("Site"), TypeError, "give a class, or Kind"
    yield lambda: controller(site("web", "default")), TypeError, "give its class, Site"
    yield lambda: controller(Site, name="My Sites"), ValueError, "small letters"
    yield lambda: controller(Site, namespaced=False), ValueError, "leave it out"
    yield lambda: controller(WIDGET).owns(Pod), ValueError, "namespaced=True"
    yield lambda: controller(Site).owns(Namespace), ValueError, ".watches(Namespace, map=function)"
    yield lambda: controller(Site).owns(Pod).owns(Pod), ValueError, "said already"
    yield lambda: controller(Site).owns(Pod, when=generation_changed), TypeError, "when=generation_changed()"
    yield lambda: controller(Site).owns(Pod, when="yes"), TypeError, "when(function)"
    yield lambda: controller(Site).watches(Secret), TypeError, ".watches(Secret, map=function)"
    yield lambda: controller(Site).watches(Secret), TypeError, ".owns(Secret) if a Site owns it"
    yield lambda: controller(Site).watches(Secret, map="web"), TypeError, "is no function"
    yield lambda: controller(Site).watches(Secret, map=asks_first), TypeError, "def asks_first(view, stores)"
    yield lambda: controller(Site).watches(Secret, map=three), TypeError, "(view) or (view, stores)"
    yield lambda: controller(Site).watches(Secret, map=sites_using, resync=0), ValueError, "above 0"
    yield lambda: controller(Site).watches(Pod, map=owners_through()), TypeError, ".owns(Pod)"
    yield lambda: controller(Site).watches(Pod, map=owners_through("ReplicaSet")), TypeError, "give a class"
    yield lambda: controller(Site).when(generation_changed()).when(generation_changed()), ValueError, "& and |"
    yield lambda: controller(Site).on(ChannelSource), TypeError, ".on(ChannelSource('name'))"
    yield lambda: controller(Site).options(concurrency=0), ValueError, "1 or more"
    yield lambda: controller(Site).options(timeout=0), ValueError, "above 0"
    yield lambda: controller(Site).run_with(SiteReconciler), TypeError, "run_with(SiteReconciler())"
    yield lambda: controller(Site).run_with(PodReconciler()), TypeError, "Reconciler[Pod], but this controller"
    yield lambda: controller(Site).run_with(Blocking()), TypeError, "async def reconcile(self, ctx, request)"
    yield lambda: controller(Site).run_with(Forgetful()), TypeError, "async def reconcile(self, ctx, request)"
    yield lambda: controller(Site).run_with(plain), TypeError, "async def plain(ctx, request)"
    yield lambda: controller(Site).run_with(object()), TypeError, "has no method reconcile"


@pytest.mark.parametrize(("mistake", "error", "says"), list(refusals()))
def test_misuse_is_caught_with_what_to_write(mistake, error, says):
    with pytest.raises(error, match=re.escape(says)):
        mistake()


def test_a_builder_ends_once():
    builder = controller(Site)
    builder.run_with(reconcile_site)
    with pytest.raises(ValueError, match="begin another controller"):
        builder.run_with(reconcile_site)
