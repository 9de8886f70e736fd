"""Names of kinds, resources and objects."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import msgspec


class Key(NamedTuple):
    """Namespace and name of an object: ``Key("default", "web")``; the namespace is empty for cluster-scoped kinds."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @classmethod
    def parse(cls, text: str) -> Key:
        """Parse ``namespace/name`` or ``name``."""
        namespace, slash, name = text.rpartition("/")
        if not name or (slash and not namespace) or "/" in namespace:
            raise ValueError(f"{text!r} is not a key; write namespace/name, or name for a cluster-scoped object")
        return cls(namespace, name)


class GroupKind(msgspec.Struct, frozen=True, order=True):
    """A kind, in all its versions."""

    group: str
    kind: str

    def __str__(self) -> str:
        return f"{self.kind}.{self.group}" if self.group else self.kind


class _Versioned(msgspec.Struct, frozen=True, order=True):
    group: str
    version: str

    @property
    def api_version(self) -> str:
        """The value of an object's ``apiVersion``."""
        return f"{self.group}/{self.version}" if self.group else self.version


class GroupVersion(_Versioned, frozen=True, order=True):
    """An API group, in one version."""

    def __str__(self) -> str:
        return self.api_version

    @classmethod
    def parse(cls, api_version: str) -> GroupVersion:
        """Parse ``group/version`` or, for the core group, ``version``."""
        group, _, version = api_version.rpartition("/")
        if not version or "/" in group:
            raise ValueError(f"{api_version!r} is not an apiVersion; write group/version, or v1 for the core group")
        return cls(group, version)


class GroupVersionKind(_Versioned, frozen=True, order=True):
    """The type of an object as written in the object: ``apps/v1``, ``Deployment``."""

    kind: str

    def __str__(self) -> str:
        return f"{self.api_version} {self.kind}"

    @property
    def group_kind(self) -> GroupKind:
        """The kind, in all its versions."""
        return GroupKind(self.group, self.kind)

    @property
    def group_version(self) -> GroupVersion:
        """The group and version without the kind."""
        return GroupVersion(self.group, self.version)

    @classmethod
    def of(cls, api_version: str, kind: str) -> GroupVersionKind:
        """Make it from an object's apiVersion and kind."""
        parsed = _parsed(api_version)
        return cls(parsed.group, parsed.version, kind)


#: Every object has an apiVersion, and few are different.
_parsed = lru_cache(maxsize=1024)(GroupVersion.parse)


class GroupVersionResource(_Versioned, frozen=True, order=True):
    """The type of an object as written in a path: ``apps/v1``, ``deployments``."""

    resource: str

    def __str__(self) -> str:
        return f"{self.api_version}/{self.resource}"

    @property
    def group_version(self) -> GroupVersion:
        """The group and version without the resource."""
        return GroupVersion(self.group, self.version)
