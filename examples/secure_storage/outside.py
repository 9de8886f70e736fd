"""How the operators talk to the cloud: four calls for each kind of thing that a storage has there.

Everything is marked with the UID of its SecureStorage, and found by it. The mark is also the token of creations, which
the cloud keeps for as long as the thing is there: asking twice makes one thing.
"""

import os
from typing import Any

import aiohttp
from examples.secure_storage.types import SecureStorage, SecureStorageStatus

from steersman.patterns import ExternalKey, Refused

#: What the cloud says of a thing: its id, its tag, and its properties.
Thing = dict[str, Any]

#: Answers of a cloud that did nothing.
_REFUSALS = frozenset({400, 404, 409, 503})


async def call(method: str, path: str, *, tag: str = "", body: Thing | None = None) -> Any:
    """One request; `Refused` if the cloud certainly did nothing."""
    url = os.environ.get("SECURE_STORAGE_CLOUD", "http://127.0.0.1:8900")
    headers = {"Idempotency-Key": tag} if method == "POST" else {}
    try:
        async with (
            aiohttp.ClientSession() as session,
            session.request(method, url + path, json=body, headers=headers) as answer,
        ):
            if answer.status in _REFUSALS:
                raise Refused(f"{await answer.text()} ({answer.status})")
            answer.raise_for_status()
            return await answer.json()
    except aiohttp.ClientConnectorError as error:
        raise Refused(f"the cloud cannot be reached: {error.strerror}") from error


class Things:
    """Things of one kind, one for each storage: what `External` needs of the outside."""

    path: str

    def wanted(self, storage: SecureStorage) -> Thing:
        """The properties that a storage asks for."""
        raise NotImplementedError

    async def find(self, key: ExternalKey) -> Thing | None:
        """By the mark."""
        found = await call("GET", f"{self.path}?tag={key.uid}")
        return found[0] if found else None

    async def create(self, key: ExternalKey, obj: SecureStorage) -> Thing:
        """With the mark."""
        return await call("POST", self.path, tag=key.uid, body={"tag": key.uid, **self.wanted(obj)})

    def up_to_date(self, obj: SecureStorage, found: Thing) -> bool:
        """Whether it has the properties that are wanted."""
        return self.wanted(obj).items() <= found.items()

    async def update(self, _: ExternalKey, obj: SecureStorage, found: Thing) -> Thing:
        """Give it those properties."""
        return await call("PATCH", f"{self.path}/{found['id']}", body=self.wanted(obj))

    async def delete(self, _: ExternalKey, found: Thing) -> None:
        """Remove it; refused while something refers to it."""
        await call("DELETE", f"{self.path}/{found['id']}")


def status_of(storage: SecureStorage) -> SecureStorageStatus:
    """The status, to read from and to write to."""
    storage.status = storage.status or SecureStorageStatus()
    return storage.status


class Buckets(Things):
    path = "/buckets"

    def wanted(self, storage: SecureStorage) -> Thing:
        """What the spec says."""
        return {"size": storage.spec.size, "region": storage.spec.region}


class Keys(Things):
    """A key is for one bucket: another bucket, another key."""

    path = "/keys"

    def wanted(self, storage: SecureStorage) -> Thing:
        """The bucket that was made before."""
        return {"bucket": status_of(storage).bucket}


class Policies(Things):
    path = "/policies"

    def wanted(self, storage: SecureStorage) -> Thing:
        """What was made before, and what the spec says."""
        status = status_of(storage)
        return {"bucket": status.bucket, "key": status.key, "retention": storage.spec.retention}
