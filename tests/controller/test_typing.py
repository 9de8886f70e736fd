"""What a type checker says of a controller: nothing where it is right, and the line where it is wrong."""

from __future__ import annotations

from pathlib import Path

from samples.controllers import NoServer
from samples.type_checkers import check_with_pyright, marked, rejected_by_mypy
from steersman.client import Client, Verbs
from steersman.controller import ReconcileClient, reconcile_pipeline

PROGRAM = """\
from typing_extensions import reveal_type

from steersman import Key, Kind, Unstructured
from steersman.controller import Stores, View, controller_for, owners_through
from steersman.objects import PartialObjectMetadata
from steersman.kinds.apps_v1 import Deployment, ReplicaSet
from steersman.kinds.core_v1 import ConfigMap, Pod, Secret

GADGET = Kind("example.com/v1", "Gadget")


def of_secret(secret: View[Secret]) -> list[Key]:
    reveal_type(secret.object)  # Secret
    return [secret.key]


def of_secret_with_stores(secret: View[Secret], stores: Stores) -> list[str]:
    reveal_type(stores.list(ConfigMap, namespace="default", labels={"app": "web"}))  # Iterable[View[ConfigMap]]
    reveal_type(stores.get(ConfigMap, secret.key))  # View[ConfigMap] | None
    reveal_type(stores.by_index(GADGET, "by-secret", secret.key.name))  # Iterable[View[Unstructured]]
    return [f"{found.key}" for found in stores.list(ConfigMap)]


def of_metadata(view: View[PartialObjectMetadata]) -> list[Key]:
    return [view.key]


def of_gadget(gadget: View[Unstructured]) -> list[Key]:
    return [gadget.key]


def of_anything(view: View[object]) -> list[Key]:
    return [view.key]


def of_numbers(secret: View[Secret]) -> list[int]:
    return [len(secret.labels)]


plan = controller_for(ConfigMap)
plan.watches(Secret, map=of_secret)
plan.watches(Secret, map=of_secret_with_stores)
plan.watches(Secret, map=of_anything)
plan.watches(Secret, map=lambda secret: [Key(secret.object.metadata.namespace or "", "web")])
plan.watches(Secret, map=lambda secret, stores: [view.key for view in stores.list(ConfigMap, labels="app=web")])
plan.watches(Secret, map=of_metadata, metadata_only=True)
plan.watches(Secret, map=of_secret, metadata_only=True)
plan.watches(GADGET, map=of_gadget)
plan.watches(GADGET, map=of_metadata, metadata_only=True)
plan.watches(Pod, map=owners_through(ReplicaSet, Deployment))

plan.watches(ConfigMap, map=of_secret)  # wrong: another kind
plan.watches(ConfigMap, map=of_secret_with_stores)  # wrong: another kind
plan.watches(Secret, map=of_metadata)  # wrong: the whole object is no metadata
plan.watches(GADGET, map=of_secret)  # wrong: nothing is known of the kind
plan.watches(Secret, map=of_numbers)  # wrong: no keys
plan.watches(Secret)  # wrong: no mapper
plan.watches(Secret, map=lambda secret: [secret.object.sepc])  # wrong: no such field
"""


CLIENTS = """\
from typing_extensions import reveal_type

from steersman import Verbs, Client, Context, Done, Key, Request
from steersman.kinds.core_v1 import ConfigMap


async def text_of(client: Verbs, key: Key) -> str:
    found = await client.find(ConfigMap, key)
    reveal_type(found)  # ConfigMap | None
    reveal_type(await client.metadata.find(ConfigMap, key))  # PartialObjectMetadata | None
    await client.close()  # wrong: the one who opened it closes it
    return (found.data or {}).get("text", "") if found else ""


async def reconcile(ctx: Context, request: Request) -> Done:
    await text_of(ctx.client, request.key)
    await text_of(ctx.client.live, request.key)
    ctx.client.prepare_apply  # wrong: internal
    ctx.client.send_apply  # wrong: internal
    ctx.client.look  # wrong: internal
    ctx.client.life  # wrong: internal
    return Done()


async def main() -> None:
    async with Client.connect() as client:
        await text_of(client, Key("default", "page"))
        client.prepare_apply  # wrong: internal
"""


def test_a_type_checker_rejects_mappers_for_another_kind_and_internals_of_clients(tmp_path: Path) -> None:
    check_with_pyright(tmp_path, PROGRAM, CLIENTS)


def test_mypy_accepts_a_helper_function_that_takes_any_client(tmp_path: Path) -> None:
    assert rejected_by_mypy(tmp_path, CLIENTS) == marked(CLIENTS)


def test_a_completion_list_has_the_verbs_and_no_internals() -> None:
    """``dir`` is what a debugger completes from."""
    client = Client(NoServer())
    verbs = {name for name in dir(Verbs) if not name.startswith("_")} | {"pipeline"}
    assert {name for name in dir(ReconcileClient(reconcile_pipeline(client))) if not name.startswith("_")} == {
        *verbs,
        *("by_index", "owned_by"),
    }
    assert {name for name in dir(client) if not name.startswith("_")} == {
        *verbs,
        *("connect", "close", "install", "request", "stream", "server"),
        *("with_transport", "dedicated", "not_waiting", "observed"),
    }
    assert not any("apply" in name for name in verbs - {"apply"})
