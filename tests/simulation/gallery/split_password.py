"""The operator draws a password and writes it into two Secrets; after a failure in between it draws another one."""

from __future__ import annotations

from contextlib import suppress

from simulation.gallery.exhibit import Exhibit
from simulation.gallery.sites import Site, creation

from steersman import Context, Done, Key, Manager, ObjectMeta, Request
from steersman.aio import randomness
from steersman.errors import AlreadyExists
from steersman.kinds.core_v1 import Secret


def secret_of(site: Site, role: str, text: str) -> Secret:
    metadata = ObjectMeta(name=f"{site.key.name}-{role}", namespace=site.key.namespace)
    return Secret(metadata=metadata, data={"text": text.encode()})


def setup(*, wrong: bool) -> Manager:
    manager = Manager(name="gallery")

    async def password(ctx: Context, site: Site, *, is_new: bool) -> str:
        if is_new:
            drawn = f"{randomness().getrandbits(64):016x}"
            with suppress(AlreadyExists):
                await ctx.client.create(secret_of(site, "server", drawn), owner=site)
            if wrong:
                return drawn
        stored = await ctx.client.live.get(Secret, Key(site.key.namespace, f"{site.key.name}-server"))
        return (stored.data or {})["text"].decode()

    async def reconcile(ctx: Context, request: Request) -> Done:
        site = await ctx.client.find(Site, request.key)
        if site is None or site.deleting:
            return Done()
        namespace, name = site.key
        found = [await ctx.client.find(Secret, Key(namespace, f"{name}-{role}")) for role in ("server", "guest")]
        word = await password(ctx, site, is_new=None in found)
        await ctx.client.apply(secret_of(site, "guest", f"db://guest:{word}@{name}"), owner=site, force=True)
        return Done()

    manager.controller(Site).owns(Secret).run_with(reconcile)
    return manager


EXHIBIT = Exhibit(
    defect="After a crash in between, the guests have another password than the server, for ever.",
    setup=setup,
    workload=creation,
    shown_by=("crash after commit", "crash after reply", "lost reply"),
    words="secrets default/home-guest: data.text does not contain the value of secrets default/home-server: data.text",
)
