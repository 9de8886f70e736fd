"""What can be said of a controller, and what is refused with what to write instead."""

import re
from datetime import timedelta

import pytest

from samples.site import Site, site
from steersman.controller import (
    ChannelSource,
    Done,
    Reconciler,
    controller_for,
    generation_changed,
    owners_through,
    when,
)
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


async def yields(ctx, request):
    yield Done()


def sites_using(secret):
    return [Key("default", "web")]


async def asks_first(secret):
    return []


def three(a, b, c):
    return []


def test_a_plan_says_everything_that_is_watched():
    source = ChannelSource("world")
    plan = (
        controller_for(Site)
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
    plan = controller_for(Site, name="sites", register=plans.append).run_with(reconcile_site)
    assert plans == [plan]
    assert plan.name == "sites"


def test_a_kind_without_a_class_can_be_reconciled():
    plan = controller_for(WIDGET, namespaced=True).owns(ConfigMap).run_with(reconcile_site)
    assert plan.kinds() == {WIDGET: False, ConfigMap: False}


def refusals():
    yield lambda: controller_for("Site"), TypeError, "pass a class, or Kind"
    yield lambda: controller_for(site("web", "default")), TypeError, "pass its class, Site"
    yield lambda: controller_for(Site, name="My Sites"), ValueError, "lower-case letters"
    yield lambda: controller_for(Site, namespaced=False), ValueError, "leave it out"
    yield lambda: controller_for(WIDGET).owns(Pod), ValueError, "namespaced=True"
    yield lambda: controller_for(Site).owns(Namespace), ValueError, ".watches(Namespace, map=function)"
    yield lambda: controller_for(Site).owns(Pod).owns(Pod), ValueError, "was already called"
    yield lambda: controller_for(Site).owns(Pod, when=generation_changed), TypeError, "when=generation_changed()"
    yield lambda: controller_for(Site).owns(Pod, when="yes"), TypeError, "when(function)"
    yield lambda: controller_for(Site).watches(Secret), TypeError, ".watches(Secret, map=function)"
    yield lambda: controller_for(Site).watches(Secret), TypeError, ".owns(Secret) if a Site owns it"
    yield lambda: controller_for(Site).watches(Secret, map="web"), TypeError, "is not a function"
    yield lambda: controller_for(Site).watches(Secret, map=asks_first), TypeError, "def asks_first(view, stores)"
    yield lambda: controller_for(Site).watches(Secret, map=three), TypeError, "(view) or (view, stores)"
    yield lambda: controller_for(Site).watches(Secret, map=sites_using, resync=-1), ValueError, "None or 0 for never"
    yield lambda: controller_for(Site).options(resync=-1), ValueError, "None or 0 for never"
    yield lambda: controller_for(Site).watches(Pod, map=owners_through()), TypeError, ".owns(Pod)"
    yield lambda: controller_for(Site).watches(Pod, map=owners_through("ReplicaSet")), TypeError, "pass a class"
    yield lambda: controller_for(Site).when(generation_changed()).when(generation_changed()), ValueError, "& and |"
    yield lambda: controller_for(Site).on(ChannelSource), TypeError, ".on(ChannelSource('name'))"
    yield lambda: controller_for(Site).options(concurrency=0), ValueError, "at least 1"
    yield lambda: controller_for(Site).options(timeout=0), ValueError, "above 0"
    yield lambda: controller_for(Site).options(timeout=timedelta(minutes=1)), TypeError, "write timeout=60"
    yield lambda: controller_for(Site).options(resync=timedelta(hours=1)), TypeError, "write resync=3600"
    yield (
        lambda: controller_for(Site).watches(Secret, map=sites_using, resync=timedelta(hours=1)),
        TypeError,
        "write resync=3600",
    )
    yield lambda: controller_for(Site).run_with(reconcile_site(None, None)), TypeError, "run_with(reconcile_site)"
    yield lambda: controller_for(Site).run_with(yields), TypeError, "return Done()"
    yield lambda: controller_for(Site).run_with(SiteReconciler), TypeError, "run_with(SiteReconciler())"
    yield lambda: controller_for(Site).run_with(PodReconciler()), TypeError, "Reconciler[Pod], but this controller"
    yield lambda: controller_for(Site).run_with(Blocking()), TypeError, "async def reconcile(self, ctx, request)"
    yield lambda: controller_for(Site).run_with(Forgetful()), TypeError, "async def reconcile(self, ctx, request)"
    yield lambda: controller_for(Site).run_with(plain), TypeError, "async def plain(ctx, request)"
    yield lambda: controller_for(Site).run_with(object()), TypeError, "has no method reconcile"


@pytest.mark.parametrize(("mistake", "error", "says"), list(refusals()))
def test_misuse_is_caught_with_what_to_write(mistake, error, says):
    with pytest.raises(error, match=re.escape(says)):
        mistake()


def test_a_builder_ends_once():
    builder = controller_for(Site)
    builder.run_with(reconcile_site)
    with pytest.raises(ValueError, match="begin another controller"):
        builder.run_with(reconcile_site)
