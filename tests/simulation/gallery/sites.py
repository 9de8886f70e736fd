"""The kind that the operators of the gallery reconcile, its child, and what users do with them."""

from __future__ import annotations

from steersman import Key, MergePatch, ObjectMeta, Resource, Spec, Status
from steersman.kinds.core_v1 import ConfigMap, Namespace
from steersman.simulation import ScenarioUser

FINALIZER = "gallery.example.com/cleanup"


class SiteSpec(Spec):
    text: str = "a"


class SiteStatus(Status):
    ready: bool = False
    text: str = ""
    #: The name of a child.
    child: str = ""
    #: The id of an account in an external system.
    account: str = ""


class Site(Resource[SiteSpec, SiteStatus], group="gallery.example.com", version="v1"):
    """A page of text."""


def config_map(site: Site, *, name: str = "", namespace: str = "", **data: str) -> ConfigMap:
    """The child of a Site, with its text."""
    return ConfigMap(
        metadata=ObjectMeta(
            name=name or site.key.name,
            namespace=namespace or site.key.namespace,
            labels={"app": "site", "site": site.key.name},
        ),
        data={"text": site.spec.text, **data},
    )


def with_finalizer(site: Site) -> list[str]:
    """The finalizers of a Site and ours."""
    return [*without_finalizer(site), FINALIZER]


def without_finalizer(site: Site) -> list[str]:
    """The finalizers of a Site except ours."""
    return [name for name in site.metadata.finalizers or () if name != FINALIZER]


# what users do


async def create(user: ScenarioUser, name: str = "home", *, namespace: str = "default", text: str = "a") -> None:
    """Create a Site, and its namespace if there is none."""
    if await user.client.find(Namespace, namespace) is None:
        await user.client.create(Namespace(metadata=ObjectMeta(name=namespace)))
    site = Site(metadata=ObjectMeta(name=name, namespace=namespace), spec=SiteSpec(text=text))
    await user.client.create(site)


async def change(user: ScenarioUser, text: str, name: str = "home") -> None:
    """Change the text of a Site."""
    await user.client.patch(Site, Key("default", name), MergePatch({"spec": {"text": text}}))


async def annotate(user: ScenarioUser, kind: type[Site | ConfigMap], name: str, note: str) -> None:
    """Write a note on an object."""
    patch = MergePatch({"metadata": {"annotations": {"note": note}}})
    await user.client.patch(kind, Key("default", name), patch)


async def delete(user: ScenarioUser, name: str = "home") -> None:
    """Delete a Site."""
    await user.client.delete(Site, Key("default", name), missing_ok=True)


async def creation(user: ScenarioUser) -> None:
    """A Site is created."""
    await create(user)
    await user.settled()


async def change_of_text(user: ScenarioUser) -> None:
    """A Site is created, and its text is changed."""
    await creation(user)
    await change(user, "b")
    await user.settled()


async def life(user: ScenarioUser) -> None:
    """A Site is created and deleted."""
    await creation(user)
    await delete(user)
    await user.settled()
