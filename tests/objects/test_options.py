"""The options of a kind: what no server would take for what it should be is refused when the class is defined."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.objects import Object, PrinterColumn, Resource, ScaleSubresource, Spec, Status
from steersman.objects.struct import StructMeta


class SiteSpec(Spec):
    mode: str = "static"


def declare(parent: Any = Resource[SiteSpec, None], **options: Any) -> type[Object]:
    """``class Site(parent, group="web.example.com", version="v1", **options)``."""

    class Site(parent, **({"group": "web.example.com", "version": "v1"} | options)):
        pass

    return Site


READY = PrinterColumn(name="Ready", type="integer", json_path=".status.ready")
LABEL = "is not a valid API name: use at most 63 lower case letters, digits and -, starting with a letter; write one such as"
DOMAIN = "is not a domain name: use lower case letters, digits, - and dots between them; write one such as group="
MISUSE: list[tuple[dict[str, Any], str]] = [
    ({"short_names": "st"}, 'short_names="st" is not a tuple; write short_names=("st",)'),
    ({"short_names": ["st"]}, "short_names=['st'] is not a tuple; write short_names=(\"st\",)"),
    ({"short_names": (1,)}, 'short_names=(1,) must contain strings; write short_names=("st",)'),
    ({"short_names": ("ST",)}, f'short_names="ST" {LABEL} "st"'),
    ({"categories": "all"}, 'categories="all" is not a tuple; write categories=("all",)'),
    ({"selectable_fields": ".spec.mode"}, 'selectable_fields=".spec.mode" is not a tuple; write selectable_fields=('),
    ({"scope": "cluster"}, 'scope="cluster" is neither "Namespaced" nor "Cluster"; write scope="Cluster"'),
    ({"scope": "Global"}, 'scope="Global" is neither "Namespaced" nor "Cluster"; write one of them'),
    ({"columns": READY}, "is not a tuple; write columns=(PrinterColumn("),
    ({"columns": [READY]}, "is not a tuple; write columns=(PrinterColumn(...),)"),
    ({"columns": ("Ready",)}, "columns=('Ready',) must contain printer columns, such as PrinterColumn(name="),
    ({"scale": True}, "scale=True is not a ScaleSubresource; write scale=ScaleSubresource()"),
    ({"group": ""}, 'group="" is the core group of Kubernetes; write a domain, such as group="web.example.com"'),
    ({"group": "Web.example.com"}, f'group="Web.example.com" {DOMAIN}"web.example.com"'),
    ({"group": "web..example.com"}, f'group="web..example.com" {DOMAIN}'),
    ({"group": "web.example.com/v1"}, f'group="web.example.com/v1" {DOMAIN}'),
    ({"group": "web.example.com\n"}, f"group='web.example.com\\n' {DOMAIN}"),
    ({"group": "a" * 254}, DOMAIN),
    ({"group": None}, f"group=None {DOMAIN}"),
    ({"version": ""}, f'version="" {LABEL} "v1"'),
    ({"version": "1"}, f'version="1" {LABEL} "v1"'),
    ({"version": "V1"}, f'version="V1" {LABEL} "v1"'),
    ({"version": 1}, f'version=1 {LABEL} "v1"'),
    ({"plural": ""}, f'plural="" {LABEL} "sites"'),
    ({"plural": "Sites"}, f'plural="Sites" {LABEL} "sites"'),
    ({"plural": "s" * 64}, f'{LABEL} "sites"'),
    ({"singular": "a site"}, f'singular="a site" {LABEL} "site"'),
    ({"kind": "Si_te"}, 'kind="Si_te" is not a valid kind'),
    ({"kind": ""}, 'kind="" is not a valid kind'),
]


@pytest.mark.parametrize(("options", "said"), MISUSE, ids=lambda value: str(value)[:50])
def test_misuse_names_the_class_and_what_to_write(options: dict[str, Any], said: str) -> None:
    with pytest.raises(TypeError) as refusal:
        declare(**options)
    assert str(refusal.value).startswith("class Site: ")
    assert said in str(refusal.value)


def test_a_column_of_no_known_type() -> None:
    wrong: Any = PrinterColumn(name="Ready", type="int", json_path=".status.ready")  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError) as refusal:
        declare(columns=(READY, wrong))
    assert str(refusal.value) == (
        'class Site: the column "Ready" has the unknown type "int"; '
        'write one of "integer", "number", "string", "boolean", "date"'
    )


def test_what_is_well_formed_is_taken_as_it_is() -> None:
    options = declare(
        group="web-1.example.com",
        version="v1beta1",
        plural="sitez",
        scope="Cluster",
        short_names=("st", "s-t"),
        categories=("all",),
        selectable_fields=(".spec.mode",),
        columns=(READY,),
        scale=ScaleSubresource(),
    ).__resource__
    assert (options.group, options.version, options.plural, options.singular) == (
        "web-1.example.com",
        "v1beta1",
        "sitez",
        "site",
    )
    assert (options.short_names, options.columns) == (("st", "s-t"), (READY,))


def test_built_in_groups_need_no_dot() -> None:
    """A type of one's own for a built-in kind is derived from Object: its group may be empty, or a bare word."""
    assert declare(Object, group="", plural="configmaps").__resource__.api_version == "v1"
    assert declare(Object, group="apps").__resource__.api_version == "apps/v1"


def test_options_of_what_is_no_kind() -> None:
    with pytest.raises(TypeError, match="derive the class from Resource"):
        StructMeta("Part", (Spec,), {}, group="web.example.com", version="v1")
    with pytest.raises(TypeError, match="unknown option shortnames; the options are group, version"):
        declare(shortnames=("st",))
    with pytest.raises(TypeError, match="version= is missing; pass both, such as group="):
        StructMeta("Site", (Object,), {}, group="web.example.com")


def test_a_status_in_the_place_of_the_spec_is_refused() -> None:
    """The kind would have the fields of its status as its spec."""
    with pytest.raises(
        TypeError, match=r"Resource\[Status, SiteSpec\] has its status first; write Resource\[SiteSpec, Status\]"
    ):
        Resource[Status, SiteSpec]
