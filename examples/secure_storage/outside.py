"""The operators' client of the cloud: four calls for each kind of cloud object.

Every cloud object has the UID of its SecureStorage as its tag, and is found by it. The tag is also the idempotency token,
which the cloud keeps as long as the object exists: a repeated request creates one object.
"""

import os
from typing import Any

import aiohttp
from examples.secure_storage.types import SecureStorage

from steersman.patterns import ExternalKey, ServiceRefused

#: A cloud object: its id, its tag and its properties.
Thing = dict[str, Any]

#: Responses after which nothing has changed.
_REFUSALS = frozenset({400, 404, 409, 503})


async def call(method: str, path: str, *, tag: str = "", body: Thing | None = None) -> Any:
    """Send one request; raise `ServiceRefused` if the cloud certainly did nothing."""
    url = os.environ.get("SECURE_STORAGE_CLOUD", "http://127.0.0.1:8900")
    headers = {"Idempotency-Key": tag} if method == "POST" else {}
    try:
        async with (
            aiohttp.ClientSession() as session,
            session.request(method, url + path, json=body, headers=headers) as answer,
        ):
            if answer.status in _REFUSALS:
                raise ServiceRefused(f"{await answer.text()} ({answer.status})")
            answer.raise_for_status()
            return await answer.json()
    except aiohttp.ClientConnectorError as error:
        raise ServiceRefused(f"the cloud cannot be reached: {error.strerror}") from error


class Things:
    """Cloud objects of one kind, one for each storage: the protocol that `External` needs."""

    path: str

    def wanted(self, storage: SecureStorage) -> Thing:
        """Return the properties that a storage asks for."""
        raise NotImplementedError

    async def find(self, key: ExternalKey, _: SecureStorage) -> Thing | None:
        """Find by tag."""
        found = await call("GET", f"{self.path}?tag={key.uid}")
        return found[0] if found else None

    async def create(self, key: ExternalKey, obj: SecureStorage) -> Thing:
        """Create with the tag."""
        created: Thing = await call("POST", self.path, tag=key.uid, body={"tag": key.uid, **self.wanted(obj)})
        return created

    def up_to_date(self, obj: SecureStorage, found: Thing) -> bool:
        """Whether it has the wanted properties."""
        return self.wanted(obj).items() <= found.items()

    async def update(self, _: ExternalKey, obj: SecureStorage, found: Thing) -> Thing:
        """Set the wanted properties."""
        updated: Thing = await call("PATCH", f"{self.path}/{found['id']}", body=self.wanted(obj))
        return updated

    async def delete(self, _: ExternalKey, __: SecureStorage, found: Thing) -> None:
        """Delete it; the cloud rejects this while something refers to it."""
        await call("DELETE", f"{self.path}/{found['id']}")


class Buckets(Things):
    path = "/buckets"

    def wanted(self, storage: SecureStorage) -> Thing:
        """Return the properties from the spec."""
        return {"size": storage.spec.size, "region": storage.spec.region}


class Keys(Things):
    """A key belongs to one bucket: another bucket needs another key."""

    path = "/keys"

    def wanted(self, storage: SecureStorage) -> Thing:
        """Return the properties, with the bucket created before."""
        return {"bucket": storage.ensure_status().bucket}


class Policies(Things):
    path = "/policies"

    def wanted(self, storage: SecureStorage) -> Thing:
        """Return the properties from the earlier objects and from the spec."""
        status = storage.ensure_status()
        return {"bucket": status.bucket, "key": status.key, "retention": storage.spec.retention}
