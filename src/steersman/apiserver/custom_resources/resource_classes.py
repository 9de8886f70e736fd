"""Resource classes given to a server: their definitions, stored as objects if the server serves CRDs.

Guarantee: several classes of one kind are its versions; invalid classes are rejected with the server's message.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import cast

from msgspec.structs import replace

from steersman import kinds as builtin
from steersman.apiserver.context import Backend
from steersman.apiserver.custom_resources.definitions import definitions_of
from steersman.apiserver.custom_resources.extensions import NONE, Extensions
from steersman.apiserver.custom_resources.lifecycle import GROUP, HEADERS, ITSELF, RESOURCE
from steersman.apiserver.documents import copied
from steersman.apiserver.registry import ResourceRegistry
from steersman.apiserver.registry.definition import Definition, Tree
from steersman.apiserver.request import ServerRequest
from steersman.apiserver.verbs.create import create_object
from steersman.apiserver.verbs.options import WriteOptions
from steersman.apiserver.verbs.update import Change
from steersman.objects import Object, ResourceOptions
from steersman.schemas import crd_for, schema_for, undescribed_crd
from steersman.wire import HttpRequest


def listed(resources: Iterable[type[Object]]) -> tuple[type[Object], ...]:
    """The resource classes of an option. Raises for a single class."""
    if isinstance(resources, type):
        raise TypeError(f"resources must be a list of classes: write resources=[{resources.__name__}]")
    return tuple(resources)


def crds_of(resources: Iterable[type[Object]], registry: ResourceRegistry) -> list[Tree]:
    """The CRDs of resource classes, with descriptions if a server stores them. Raises for Kubernetes' own kinds."""
    by_name: dict[str, list[type[Object]]] = {}
    for cls in resources:
        options = _options(cls)
        found = by_name.setdefault(f"{options.plural}.{options.group}", [])
        if cls in found:
            continue
        same = next((each for each in found if _options(each).version == options.version), None)
        if same is not None:
            name = f"{options.plural}.{options.group}"
            why = f"{same.__qualname__} and {cls.__qualname__} are both {name} {options.version}"
            raise ValueError(f"resources: {why}; leave one of them out")
        found.append(cls)
    make = undescribed_crd if registry.find(GROUP, "v1", RESOURCE) is None else crd_for
    return [make(*classes) for classes in by_name.values()]


def _options(cls: type[Object]) -> ResourceOptions:
    options: ResourceOptions | None = getattr(cls, "__resource__", None)
    if options is None:
        name = cls.__qualname__ if isinstance(cast("object", cls), type) else repr(cls)
        raise TypeError(
            f"{name} declares no kind, so it cannot be served; pass a class derived from Resource[...] with group= and "
            "version= as class options"
        )
    own = cls.gvk().group_version
    if own in builtin.all_group_versions():
        raise ValueError(
            f"resources: {cls.__qualname__} is one of Kubernetes' own kinds, which kinds=[{str(own)!r}] serves"
        )
    return options


def unstored_definitions(
    crds: Iterable[Tree], extensions: Extensions, resources: Iterable[type[Object]]
) -> list[Definition]:
    """The definitions of CRDs that a server does not store as objects."""
    classes = {cls.gvk(): cls for cls in resources}
    return [
        replace(definition, described=partial(schema_for, classes[definition.gvk]))
        for crd in crds
        for definition in definitions_of(crd, extension=extensions.get(crd["metadata"]["name"], NONE))
    ]


async def install_crds(backend: Backend, crds: Iterable[Tree]) -> None:
    """Create CRDs in a server, or update the existing ones."""
    definition = backend.registry.find(GROUP, "v1", RESOURCE)
    assert definition is not None
    context = backend.context(definition)
    for crd in crds:
        tree: Tree = copied(crd)
        name: str = tree["metadata"]["name"]
        there, _ = await backend.storage.get(definition.storage_key("", name))
        definition.strategy.default(tree)
        if there is None:
            wire = HttpRequest("POST", f"/apis/{GROUP}/v1/{RESOURCE}", headers=HEADERS)
            await create_object(context, ServerRequest(wire, user=ITSELF), tree, WriteOptions())
            continue
        wire = HttpRequest("PUT", f"/apis/{GROUP}/v1/{RESOURCE}/{name}", headers=HEADERS)
        change = partial(_with_spec, tree["spec"])
        await Change(context, ServerRequest(wire, user=ITSELF), WriteOptions(), change).make()


def _with_spec(spec: Tree, crd: Tree) -> Tree:
    crd["spec"] = copied(spec)
    return crd
