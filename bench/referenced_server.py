"""The API server of the referenced benchmark, a separate process over TLS.

``python -m bench.referenced_server KUBECONFIG SECRETS OWNERS NAMESPACES`` serves that many Secrets and ConfigMaps, evenly in
namespaces. Each ConfigMap names a Secret. It prints a line when it serves, and exits when its input ends.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from steersman import Client, ObjectMeta
from steersman.apiserver import ApiServer, MemoryStorage
from steersman.apiserver.serving import serve
from steersman.kinds.core_v1 import ConfigMap, Namespace, Secret
from steersman.objects import Key
from steersman.transport import InProcessTransport

#: About the size of a certificate with its key.
VALUE = "x" * 2048
#: Objects to store in one turn of the loop.
BATCH = 5_000


def namespace_of(number: int, namespaces: int) -> str:
    """The namespace of an object."""
    return f"team-{number % namespaces:03}"


def copies(template: bytes, names: Iterator[Key], model: Key) -> Iterator[tuple[str, bytes]]:
    """Copies of a stored object under other names: the storage keys, and the bytes."""
    tree = msgspec.json.decode(template)
    plural = "secrets" if tree["kind"] == "Secret" else "configmaps"
    for number, key in enumerate(names):
        if key == model:
            continue
        metadata = {
            **tree["metadata"],
            "name": key.name,
            "namespace": key.namespace,
            "uid": f"{number:08x}-{plural[:4].encode().hex()[:4]}-4000-8000-000000000000",
        }
        copy = {**tree, "metadata": metadata}
        if plural == "configmaps":
            copy["data"] = {"secret": key.name}
        yield f"core/{plural}/{key.namespace}/{key.name}", msgspec.json.encode(copy)


async def run(kubeconfig: Path, secrets: int, owners: int, namespaces: int) -> None:
    """Fill the storage, and serve."""
    server = ApiServer(kinds=["v1", "coordination.k8s.io/v1", "events.k8s.io/v1"])
    storage = server.storage
    assert isinstance(storage, MemoryStorage)
    async with serve(server, kubeconfig=kubeconfig), Client(InProcessTransport(server.handler)) as client:
        for number in range(namespaces):
            await client.create(Namespace(metadata=ObjectMeta(name=namespace_of(number, namespaces))))
        model = Key(namespace_of(0, namespaces), "object-0")
        metadata = ObjectMeta(name=model.name, namespace=model.namespace)
        await client.create(Secret(metadata=metadata, string_data={"tls.crt": VALUE}))
        await client.create(ConfigMap(metadata=metadata, data={"secret": model.name}))
        for plural, count in (("secrets", secrets), ("configmaps", owners)):
            record, _ = await storage.get(f"core/{plural}/{model.namespace}/{model.name}")
            assert record is not None
            names = (Key(namespace_of(number, namespaces), f"object-{number}") for number in range(count))
            made = copies(record.value, names, model)
            while batch := dict(next(made, ("", b"")) for _ in range(BATCH)):
                batch.pop("", None)
                if not batch:
                    break
                await storage.put_new(batch)
                await asyncio.sleep(0)
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(run(Path(sys.argv[1]), *map(int, sys.argv[2:5])))
