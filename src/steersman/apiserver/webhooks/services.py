"""The default resolver for the Services of webhooks: reads Services and EndpointSlices from the store."""

from __future__ import annotations

from steersman.apiserver.documents import decode_stored
from steersman.apiserver.registry.builtin.types.trees import items, subtree
from steersman.apiserver.storage import Storage


class StoredServices:
    """Resolves a Service to a ready endpoint of its EndpointSlices; an ExternalName Service to its external name."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    async def __call__(self, namespace: str, name: str, port: int) -> tuple[str, int]:
        """The host and port of a ready endpoint. Raises `LookupError`."""
        record, _ = await self._storage.get(f"core/services/{namespace}/{name}")
        if record is None:
            raise LookupError(f'service "{name}" not found')
        spec = subtree(decode_stored(record), "spec")
        chosen = next((each for each in items(spec, "ports") if each.get("port") == port), None)
        if chosen is None:
            raise LookupError(f'no service port {port} found for service "{name}"')
        if spec.get("type") == "ExternalName":
            return spec.get("externalName") or "", port
        page = await self._storage.list(f"discovery.k8s.io/endpointslices/{namespace}/")
        for each in page.records:
            # A search in the bytes is faster than decoding all slices of the namespace.
            if f'"{name}"'.encode() not in each.value:
                continue
            tree = decode_stored(each)
            if subtree(tree, "metadata", "labels").get("kubernetes.io/service-name") != name:
                continue
            number = next(
                (one["port"] for one in items(tree, "ports") if (one.get("name") or "") == (chosen.get("name") or "")),
                None,
            )
            for endpoint in items(tree, "endpoints"):
                if number and endpoint.get("addresses") and subtree(endpoint, "conditions").get("ready") is not False:
                    return endpoint["addresses"][0], number
        raise LookupError(f'no endpoints available for service "{name}"')
