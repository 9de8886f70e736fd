"""An operator in three releases, each the source of a module: a first one, one with a new field, one with a new version."""

from __future__ import annotations

from pathlib import Path

_FIRST = '''
from steersman import LeaderElection, Manager, ObjectMeta, Resource, Spec, generates
from steersman.kinds.core_v1 import ConfigMap
from steersman.webhooks import VersionConverter, WebhookEndpoint, mutates, validates, Denied

class SiteSpec(Spec):
    image: str
FIELD

class Site(Resource[SiteSpec, None], group="GROUP", version="v1", storage=STORED):
    """A web site."""

class NewSite(Resource[SiteSpec, None], group="GROUP", version="v2", kind="Site", plural="sites"):
    """A web site, as in the third release."""

@generates(Site, children=(ConfigMap,))
def pages(site: Site) -> list[ConfigMap]:
    return [ConfigMap(metadata=ObjectMeta(name=site.key.name), data={"image": site.spec.image})]

manager = Manager(name="NAME", leader=LeaderElection("NAME"))
manager.add(pages)
'''
_CONVERTED = """
manager.add(
    VersionConverter(
        Site,
        NewSite,
        to_hub=lambda site: NewSite(metadata=site.metadata, spec=site.spec),
        to_spoke=lambda site: Site(metadata=site.metadata, spec=site.spec),
    )
)
"""
_CHECKED = """
@mutates(Site)
def defaults(site: Site) -> Site:
    if ":" not in site.spec.image:
        site.spec.image += ":stable"
    return site

@validates(Site)
def checks(site: Site) -> None:
    if site.spec.image.endswith(":latest"):
        raise Denied("the image must name a version")

manager.webhook_endpoint = WebhookEndpoint(service="NAME/hooks", port=PORT)
manager.add(defaults)
manager.add(checks)
"""


def write_release(folder: Path, number: int, *, name: str, group: str) -> str:
    """Write the module of a release; returns its name."""
    field = "" if number == 1 else "    tls: bool = False\n"
    text = _FIRST.replace("FIELD", field).replace("STORED", str(number < 3)) + (_CONVERTED if number == 3 else "")
    return _written(folder, f"release{number}", text, name, group)


def write_checked(folder: Path, *, name: str, group: str, port: int) -> str:
    """Write the module of a release with defaults and checks, whose webhooks listen on a port; returns its name."""
    text = (_FIRST + _CHECKED).replace("FIELD", "").replace("STORED", "True").replace("PORT", str(port))
    return _written(folder, "checked", text, name, group)


def _written(folder: Path, module: str, text: str, name: str, group: str) -> str:
    unique = f"{name.replace('-', '_')}_{module}"
    (folder / f"{unique}.py").write_text(text.replace("GROUP", group).replace("NAME", name), encoding="utf-8")
    return unique
