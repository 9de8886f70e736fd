"""Paths of the Kubernetes API: `/api/v1/...` for the core group, `/apis/GROUP/VERSION/...` for every other.

Guarantees
- `parse_path` is the inverse of `ResourcePath.path`.
- A name can never lead to another object: `.`, `..`, and names with `/` or `%` are rejected, as in kube-apiserver.
"""

import re
from urllib.parse import quote, unquote

import msgspec

# characters that need no escape in a path segment, without "%"; names of RBAC objects use ":"
_SAFE = "-._~!$&'()*+,;=:@"
_PLAIN = re.compile(r"[A-Za-z0-9\-._~!$&'()*+,;=:@]+")

_ESCAPED = re.compile(r"(?:[^%]|%[0-9A-Fa-f]{2})*")
_SUBPATH = re.compile(r"(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/]|%[0-9A-Fa-f]{2})*")

# `/namespaces/x/status` is a subresource of the namespace, not a collection "status" inside it
_NAMESPACE_SUBRESOURCES = frozenset({"status", "finalize"})


class ResourcePath(msgspec.Struct, frozen=True):
    """The place of a resource: a collection without `name`, an object with it, a subresource with `subresource`.

    `namespace=None` means cluster-scoped, or the collection over all namespaces. A namespace itself is
    `ResourcePath("", "v1", "namespaces", name="default")`. `subpath` follows subresources that forward requests, such
    as `proxy`, and is kept unchanged.
    """

    group: str
    version: str
    resource: str
    namespace: str | None = None
    name: str | None = None
    subresource: str | None = None
    subpath: str | None = None

    @property
    def rbac_resource(self) -> str:
        """The resource as RBAC names it: ``sites``, or ``sites/status`` for a subresource."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource

    @property
    def path(self) -> str:
        """The percent-encoded path; raises ValueError for an invalid combination."""
        if self.subresource is not None:
            self._check_subresource()
        elif self.subpath is not None:
            raise ValueError(f"a subpath needs a subresource: {self!r}")
        path = group_version_path(self.group, self.version)
        if self.namespace is not None:
            if self.resource in _NAMESPACE_SUBRESOURCES:
                raise ValueError(f"{self.resource!r} in a namespace is a subresource of the namespace itself: {self!r}")
            path = f"{path}/namespaces/{quote_segment(self.namespace)}"
        path = f"{path}/{quote_segment(self.resource)}"
        if self.name is not None:
            path = f"{path}/{quote_segment(self.name)}"
        if self.subresource is not None:
            path = f"{path}/{quote_segment(self.subresource)}"
        return path if self.subpath is None else f"{path}/{self.subpath}"

    def _check_subresource(self) -> None:
        if self.name is None:
            raise ValueError(f"the path of a subresource needs a name: {self!r}")
        if self.resource == "namespaces" and self.namespace is None and self.subresource not in _NAMESPACE_SUBRESOURCES:
            raise ValueError(f"a namespace only has the subresources status and finalize: {self!r}")
        if self.subpath is not None and (not _SUBPATH.fullmatch(self.subpath) or ".." in self.subpath.split("/")):
            raise ValueError(f"a subpath must be percent-encoded and must not contain ..: {self!r}")

    @property
    def collection(self) -> "ResourcePath":
        """The collection that contains the object."""
        return ResourcePath(self.group, self.version, self.resource, self.namespace)


def group_version_path(group: str, version: str) -> str:
    """The path of a group and version, which lists its resources: `/api/v1`, `/apis/apps/v1`."""
    if not group:
        return f"/api/{quote_segment(version)}"
    return f"/apis/{quote_segment(group)}/{quote_segment(version)}"


def quote_segment(text: str) -> str:
    """Percent-encode one segment of a path; raises ValueError for one that could lead elsewhere."""
    if _PLAIN.fullmatch(text) and text not in {".", ".."}:
        return text
    if not is_segment(text):
        raise ValueError(f"{text!r} is not a valid path segment: it must not be empty, . or .., or contain / or %")
    return quote(text, safe=_SAFE)


def is_segment(text: str) -> bool:
    """Whether a name is a valid path segment."""
    return bool(text) and text not in {".", ".."} and "/" not in text and "%" not in text


def unquote_segment(text: str) -> str:
    """Decode one segment of a path; raises ValueError if it is not a name in valid percent-encoded UTF-8."""
    if "%" in text:
        if not _ESCAPED.fullmatch(text):
            raise ValueError(f"{text!r} has an incomplete percent-escape")
        # UnicodeDecodeError is a ValueError
        text = unquote(text, errors="strict")
    if not is_segment(text):
        raise ValueError(f"{text!r} is not a name")
    return text


def parse_path(path: str) -> ResourcePath | None:
    """Parse the path of a collection, object or subresource; None for all other paths, including discovery."""
    match path.split("/"):
        case ["", "api", version, *rest]:
            group = ""
        case ["", "apis", group, version, *rest] if group:
            pass
        case _:
            return None
    namespace = None
    if len(rest) > 2 and rest[0] == "namespaces" and rest[2] and rest[2] not in _NAMESPACE_SUBRESOURCES:
        namespace, rest = rest[1], rest[2:]
    # the rest after the subresource belongs to the forwarding target and stays unchanged
    names, tail = rest[:3], rest[3:]
    if names and not names[-1] and not tail:
        names.pop()
    if not names:
        return None
    try:
        resource, *more = map(unquote_segment, names)
        return ResourcePath(
            unquote_segment(group) if group else "",
            unquote_segment(version),
            resource,
            None if namespace is None else unquote_segment(namespace),
            more[0] if more else None,
            more[1] if len(more) > 1 else None,
            "/".join(tail) if tail else None,
        )
    except ValueError:
        return None
