"""Scarce values of an object, such as the addresses of a Service, while it is written.

Guarantees
- A write that fails leaves allocated what was allocated before it, and nothing else.
- What an object no longer needs is released once that is stored.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from steersman.apiserver.context import VerbContext
from steersman.apiserver.registry.definition import Tree


@asynccontextmanager
async def allocated(context: VerbContext, obj: Tree, old: Tree | None, *, dry_run: bool) -> AsyncGenerator[None]:
    """Allocate what an object needs, for a block that stores it in place of ``old``."""
    strategy = context.definition.strategy
    await strategy.allocate(obj, old, context, dry_run=dry_run)
    given_up, kept = obj, old
    try:
        yield
        given_up, kept = old, obj
    finally:
        if not dry_run:
            await strategy.release(given_up, kept, context)
