"""The schemas of a live server: its OpenAPI v3 documents and its resource lists."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from steersman.cli.failure import Failure
from steersman.codegen import UnreadableSchema, discovery_path, served_group_versions
from steersman.errors import ApiError
from steersman.objects import GroupVersion, Tree


@dataclass(frozen=True)
class ServerSchemas:
    """A server's description of its kinds."""

    #: The server's version, such as ``v1.37.1``.
    version: str
    documents: list[Tree]
    #: One APIResourceList per group-version.
    discovery: list[Tree]
    #: Group -> the server's preferred version.
    preferred: dict[str, str] = field(default_factory=dict[str, str])


async def fetch(paths: Iterable[str], *, kubeconfig: str | Path | None, context: str | None) -> dict[str, bytes]:
    """Read paths of a server; a failure is one sentence."""
    from steersman.client import Client  # noqa: PLC0415 - the other commands need none

    try:
        async with Client.connect(kubeconfig=kubeconfig, context=context) as client:
            return {path: await client.request("GET", path, accept="application/json") for path in paths}
    except ApiError as error:
        raise Failure(str(error)) from error


async def read_server(
    *,
    kubeconfig: str | Path | None = None,
    context: str | None = None,
    wanted: Callable[[GroupVersion], bool],
    progress: Callable[[str], None],
) -> ServerSchemas:
    """Read the schemas of the wanted group-versions."""
    first = await fetch(("/version", "/apis", "/openapi/v3"), kubeconfig=kubeconfig, context=context)
    try:
        available = served_group_versions(_json(first["/openapi/v3"], "/openapi/v3"))
    except UnreadableSchema as error:
        raise Failure(str(error)) from error
    chosen = {group_version: path for group_version, path in sorted(available.items()) if wanted(group_version)}
    version = str(_json(first["/version"], "/version").get("gitVersion", "of unknown version"))
    if not chosen:
        return ServerSchemas(version=version, documents=[], discovery=[])
    progress(f"reading the schemas of {len(chosen)} group-versions from Kubernetes {version}")
    lists = {group_version: discovery_path(group_version) for group_version in chosen}
    answers = await fetch([*chosen.values(), *lists.values()], kubeconfig=kubeconfig, context=context)
    return ServerSchemas(
        version=version,
        documents=[_json(answers[path], path) for path in chosen.values()],
        discovery=[_json(answers[path], path) for path in lists.values()],
        preferred=_preferred(_json(first["/apis"], "/apis")),
    )


def _preferred(answer: Tree) -> dict[str, str]:
    groups: list[Tree] = answer.get("groups", [])
    return {group["name"]: group["preferredVersion"]["version"] for group in groups}


def _json(raw: bytes, path: str) -> Tree:
    try:
        return msgspec.json.decode(raw, type=Tree)
    except msgspec.MsgspecError as error:
        raise Failure(
            f"the server's response to {path} is not JSON: {error}; is this a Kubernetes API server?"
        ) from error
