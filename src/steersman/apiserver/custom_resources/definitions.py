"""The served versions of CustomResourceDefinitions, each as a `Definition`.

Guarantee: names are the accepted ones, which are the requested ones unless another definition has them.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from steersman.apiserver.custom_resources.columns import columns_of
from steersman.apiserver.custom_resources.conversion import Versions, uncalled
from steersman.apiserver.custom_resources.extensions import NONE, Extension
from steersman.apiserver.custom_resources.strategy import CustomStrategy
from steersman.apiserver.discovery.catalog import version_order
from steersman.apiserver.registry.definition import ALL_VERBS, Definition, ScalePaths, Subresource, Tree
from steersman.apiserver.registry.json_path import JsonPath
from steersman.apiserver.webhooks.targets import WebhookCaller, read_target
from steersman.kinds import all_group_versions
from steersman.objects import GroupVersionKind

if TYPE_CHECKING:
    from steersman.apiserver.custom_resources.webhook_conversion import ConversionWebhook


def definitions_of(
    crd: Tree, *, extension: Extension = NONE, since: int = 0, caller: WebhookCaller | None = None
) -> list[Definition]:
    """The definitions of a CRD's served versions.

    ``caller`` calls the conversion webhook, unless ``extension`` has a conversion function. Objects stored after the
    revision ``since`` are known to match the schemas.
    """
    spec: Tree = crd["spec"]
    status: Tree = crd.get("status") or {}
    accepted: Tree = status.get("acceptedNames") or {}
    names: Tree = accepted if accepted.get("plural") and accepted.get("kind") else spec["names"]
    group: str = spec["group"]
    conversion: Tree = spec.get("conversion") or {}
    by_webhook = conversion.get("strategy") == "Webhook"
    webhook: ConversionWebhook | None = None
    if by_webhook and caller is not None and extension.conversion is None:
        webhook = _conversion_webhook(conversion.get("webhook") or {}, caller, group)
    versions = Versions(
        group=group,
        kind=names["kind"],
        storage=_storage_version(spec),
        schemas={version["name"]: schema_of(version) for version in spec["versions"]},
        since=since,
        webhook=webhook,
        convert=extension.conversion or (uncalled(crd["metadata"]["name"], names["kind"]) if by_webhook else None),
    )
    served = [version for version in spec["versions"] if version.get("served")]
    return [_definition(spec, names, version, versions, extension) for version in served]


def _conversion_webhook(webhook: Tree, caller: WebhookCaller, group: str) -> ConversionWebhook:

    from steersman.apiserver.custom_resources.webhook_conversion import ConversionWebhook  # noqa: PLC0415 - rarely needed

    reviews: list[str] = webhook.get("conversionReviewVersions") or []
    return ConversionWebhook(caller, read_target(webhook.get("clientConfig") or {}), reviews, group)


def stored_definition(crd: Tree, *, extension: Extension = NONE, caller: WebhookCaller | None = None) -> Definition:
    """The definition of the stored version, whether or not it is served."""
    spec: Tree = crd["spec"]
    served = [version | {"served": True} for version in spec["versions"] if version.get("storage")]
    rest = [version | {"served": False} for version in spec["versions"] if not version.get("storage")]
    return definitions_of(crd | {"spec": spec | {"versions": served + rest}}, extension=extension, caller=caller)[0]


def schema_of(version: Tree) -> Tree:
    """The schema of a version of a CRD; without one, everything is allowed."""
    validation: Tree = version.get("schema") or {}
    schema: Tree | None = validation.get("openAPIV3Schema")
    return schema if schema is not None else {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def _storage_version(spec: Tree) -> str:
    stored = [version["name"] for version in spec["versions"] if version.get("storage")]
    if not stored:
        raise LookupError(f"no version of {spec['names']['plural']}.{spec['group']} is stored")
    return stored[0]


def _definition(spec: Tree, names: Tree, version: Tree, versions: Versions, extension: Extension) -> Definition:
    gvk = GroupVersionKind(spec["group"], version["name"], names["kind"])
    subresources: Tree = version.get("subresources") or {}
    paths: Tree | None = subresources.get("scale")
    scale = None if paths is None else _scale_paths(paths)
    schema = schema_of(version)
    strategy = CustomStrategy(gvk, schema, scale, extension.validator)
    selectable: list[Tree] = version.get("selectableFields") or []
    return Definition(
        gvk=gvk,
        resource=names["plural"],
        singular=names.get("singular") or names["kind"].lower(),
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        namespaced=spec["scope"] == "Namespaced",
        verbs=ALL_VERBS,
        schema=lambda: schema,
        make_strategy=lambda: strategy,
        has_status="status" in subresources,
        scale=scale,
        subresources={
            custom.name: Subresource(
                gvk=gvk, verbs=custom.verbs, handler=custom.handler, content_type=custom.content_type
            )
            for custom in extension.subresources
        },
        columns=columns_of(version),
        selectable={each["jsonPath"].lstrip("."): JsonPath(each["jsonPath"]).text for each in selectable},
        custom=True,
        stored_as=stored_apart(gvk.group, names["plural"]),
        conversion=versions.conversion(version["name"]),
        storage_version=_storage_version(spec),
        listed_as=names.get("listKind") or "",
        returns_deleted=False,
        deprecation=_deprecation(spec, version),
    )


def stored_apart(group: str, plural: str) -> tuple[str, str] | None:
    """Where a custom resource of a built-in group is stored: apart, so that it never shares keys with a built-in kind."""
    return (group, f"{plural}.custom") if group in _builtin_groups() else None


@cache
def _builtin_groups() -> frozenset[str]:
    return frozenset(group_version.group for group_version in all_group_versions())


def _deprecation(spec: Tree, version: Tree) -> str:
    if not version.get("deprecated"):
        return ""
    if version.get("deprecationWarning") is not None:
        return version["deprecationWarning"]
    group, kind = spec["group"], spec["names"]["kind"]
    newer = sorted(
        (
            other["name"]
            for other in spec["versions"]
            if other.get("served")
            and not other.get("deprecated")
            and version_order(other["name"]) < version_order(version["name"])
        ),
        key=version_order,
    )
    instead = f"; use {group}/{newer[0]} {kind}" if newer else ""
    return f"{group}/{version['name']} {kind} is deprecated{instead}"


def _scale_paths(scale: Tree) -> ScalePaths:
    selector: str | None = scale.get("labelSelectorPath")
    return ScalePaths(
        spec_replicas=_parts(scale["specReplicasPath"]),
        status_replicas=_parts(scale["statusReplicasPath"]),
        selector=None if not selector else _parts(selector),
    )


def _parts(path: str) -> tuple[str, ...]:
    return tuple(path.removeprefix(".").split("."))
