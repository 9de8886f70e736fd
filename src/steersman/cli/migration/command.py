"""``steersman migrate KIND``: rewrites stored objects to the storage version and trims ``status.storedVersions``.

Guarantees
- ``status.storedVersions`` is trimmed only after every object was written in the storage version, and only if the
  definition did not change meanwhile.
- A killed run can be repeated: it goes on where it stopped.
- ``--dry-run`` writes nothing: it counts the objects and asks the server which of them it would refuse.
- Missing permissions are named before the first write.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final

import msgspec

from steersman.cli.console import Progress, show
from steersman.cli.failure import Failure
from steersman.cli.files import say
from steersman.cli.migration.definition import (
    DEFINITION,
    StoredKind,
    forget_progress,
    read_definition,
    trim,
    wait_until_used,
)
from steersman.cli.migration.object_rewrites import Rewriting, Rewritten, counted, keys_of
from steersman.cli.migration.server_migration import ServerResult, migrate_by_server
from steersman.cli.migration.webhook_outage import unreachable_webhook
from steersman.client import Client, discover_config, retry_on_conflict
from steersman.debug import count
from steersman.errors import ApiError, ConfigError, Forbidden
from steersman.objects import Key
from steersman.telemetry import visible

_REVIEWS: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_CRDS: Final = "customresourcedefinitions"
#: How many refused objects are shown.
_SHOWN: Final = 10


class MigrateOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of the command line."""

    kind: str
    dry_run: bool = False
    by_client: bool = False
    rate: float = 200.0
    kubeconfig: str | None = None
    context: str | None = None


def migrate(options: MigrateOptions) -> int:
    """Migrate a kind; returns an exit code."""
    try:
        return asyncio.run(_migrate(options))
    except ConfigError as error:
        raise Failure(f"{error}\nOn this command line: --kubeconfig FILE, --context NAME") from error
    except ApiError as error:
        webhook = unreachable_webhook(error)
        first = f"the server cannot call the webhook {webhook}: start it, then " if webhook else ""
        raise Failure(f"{error}; {first}run the command again: it goes on where it stopped") from error


async def _migrate(options: MigrateOptions) -> int:
    config = discover_config(kubeconfig=options.kubeconfig, context=options.context)
    async with Client.connect(config, field_manager="steersman-migrate") as client:
        try:
            definition = await read_definition(client, options.kind)
        except Forbidden as error:
            raise Failure(f"cannot migrate {options.kind}: this user may not get {_CRDS} ({error})") from error
        versions = ", ".join(definition.stored)
        if definition.is_done:
            show(f"{definition.name}: nothing to do, all objects are stored in {definition.storage}")
            if definition.recorded and not options.dry_run:
                await forget_progress(client, definition)
            return 0
        await _check_permissions(client, definition)
        if options.dry_run:
            return await _preview(client, definition, options, versions)
        await wait_until_used(client, definition)
        if not await _by_server(client, definition, options):
            result = await _rewrite(client, definition, options)
            if result.failures:
                _tell_failures(definition, result)
                return 1
        await _finish(client, definition)
        show(f"{definition.name}: storedVersions is [{definition.storage}], was [{versions}]")
        return 0


async def _by_server(client: Client, definition: StoredKind, options: MigrateOptions) -> bool:
    """Whether the server has migrated the objects."""
    if options.by_client:
        return False
    result = await migrate_by_server(client, definition)
    if result is ServerResult.NO_CONTROLLER:
        say("the server has no controller for StorageVersionMigration; rewriting the objects from here")
    elif result is ServerResult.FORBIDDEN:
        say("this user may not create a StorageVersionMigration; rewriting the objects from here")
    elif result is ServerResult.SUCCEEDED:
        show(f"{definition.name}: the server has rewritten all objects in {definition.storage}")
    return result is ServerResult.SUCCEEDED


async def _rewrite(client: Client, definition: StoredKind, options: MigrateOptions) -> Rewritten:
    keys = await keys_of(client, definition)
    with Progress("objects") as progress:
        rewriting = Rewriting(client, definition, per_second=options.rate, report=progress.update)
        result = await rewriting.run(keys)
    if result.unrecorded:
        say(f"could not record the progress, so a killed run begins anew: {result.unrecorded}")
    parts = [
        f"{count(result.rewritten, 'object')} rewritten in {definition.storage}",
        f"{result.skipped} by an earlier run" if result.skipped else "",
        f"{result.gone} deleted meanwhile" if result.gone else "",
        f"{len(result.failures)} refused" if result.failures else "",
    ]
    show(f"{definition.name}: {', '.join(filter(None, parts))}")
    return result


async def _preview(client: Client, definition: StoredKind, options: MigrateOptions, versions: str) -> int:
    """Show what a migration would do."""
    keys = await keys_of(client, definition)
    with Progress("objects") as progress:
        rewriting = Rewriting(client, definition, per_second=options.rate, dry_run=True, report=progress.update)
        result = await rewriting.run(keys)
    show("\n".join(_preview_lines(definition, keys, versions)))
    if result.failures:
        _tell_failures(definition, result)
        return 1
    return 0


def _preview_lines(definition: StoredKind, keys: list[Key], versions: str) -> Iterator[str]:
    done = [key for key in keys if str(key) <= definition.done_up_to]
    yield f"{definition.name}: would rewrite {count(len(keys) - len(done), 'object')} in {definition.storage}"
    if done:
        yield f"  {count(len(done), 'object')} rewritten by an interrupted run"
    for namespace, number in counted(keys).items():
        yield f"  {visible(namespace) or 'in the cluster'}: {count(number, 'object')}"
    yield f"  storedVersions: [{versions}] would become [{definition.storage}]"


def _tell_failures(definition: StoredKind, result: Rewritten) -> None:
    for key, why in [*result.failures.items()][:_SHOWN]:
        show(f"refused: {visible(str(key))}: {visible(why)}")
    if (more := len(result.failures) - _SHOWN) > 0:
        show(f"and {more} more")
    say(f"storedVersions stays {', '.join(definition.stored)}: correct the refused objects, then run the command again")


async def _finish(client: Client, migrated: StoredKind) -> None:
    """Trim the stored versions, if the definition is still the one whose objects were rewritten."""
    current = await retry_on_conflict(lambda: _trim(client, migrated))
    if current.recorded:
        await forget_progress(client, current)


async def _trim(client: Client, migrated: StoredKind) -> StoredKind:
    current = await read_definition(client, migrated.name)
    if (current.uid, current.generation, current.storage) != (migrated.uid, migrated.generation, migrated.storage):
        raise Failure(
            f"{migrated.name} changed while its objects were rewritten, so some may be stored in another version;"
            " run the command again"
        )
    await trim(client, current)
    return current


async def _check_permissions(client: Client, definition: StoredKind) -> None:
    """Raise if the user may not do what a migration needs."""
    needed = [("patch", DEFINITION.api_version.partition("/")[0], _CRDS, "status")]
    needed += [(verb, definition.group, definition.plural, "") for verb in ("list", "patch")]
    missing: list[str] = []
    for verb, group, resource, subresource in needed:
        attributes = {"verb": verb, "group": group, "resource": resource, "subresource": subresource}
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        answer = await client.request("POST", _REVIEWS, body=msgspec.json.encode(body))
        if not msgspec.json.decode(answer)["status"].get("allowed"):
            missing.append(f"{verb} {resource}.{group}{f'/{subresource}' if subresource else ''}")
    if missing:
        raise Failure(
            f"cannot migrate {definition.name}: this user may not {', '.join(missing)} (in all namespaces); ask for a"
            " ClusterRole that allows it"
        )
