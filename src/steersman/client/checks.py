"""What is looked at before a write is sent: our own constraints, and mistakes that a server answers in riddles or not at all."""

from __future__ import annotations

from typing import Any, cast

from steersman.client.bindings import Attempt, has_status_subresource, read_in_part, resource_version_of
from steersman.objects import Object, Resource, Unstructured, decode, raw_of
from steersman.objects.errors import ApiError


class NotNew(ApiError):
    """A create was asked for with an object that the server already made."""


def check_constraints(
    obj: Object | Unstructured, tried: Attempt, *, intent: bool = False, subresource: str = ""
) -> None:
    """Refuse what our own type forbids, unless it was so already when the object was read.

    An applied ``intent`` need not be whole: other managers may own what it leaves out. A write to ``status`` is about
    the status alone.
    """
    if not isinstance(obj, Resource):
        return
    from steersman.schemas.checking import problems  # noqa: PLC0415 - only writers of our own kinds pay
    from steersman.schemas.field_problems import invalid  # noqa: PLC0415 - as above

    ours = cast("Object", obj)
    found = problems(ours)
    if found and (before := raw_of(ours)) is not None:
        earlier = set(problems(decode(type(ours), before)))
        found = [problem for problem in found if problem not in earlier]
    if intent:
        found = [problem for problem in found if problem.reason != "FieldValueRequired"]
    if subresource:
        found = [problem for problem in found if problem.path.startswith(f"{subresource}.")]
    if found:
        options = type(ours).__resource__
        name = ours.metadata.name or ours.metadata.generate_name or ""
        raise invalid(
            found, group=options.group, kind=options.kind, name=name, tried=f"{tried}, checked before sending"
        )


class PartialObject(ApiError):
    """An update was asked for with an object that holds less than the server does."""


def check_whole(obj: Object | Unstructured, tried: Attempt) -> None:
    """Refuse to replace an object by a part of it."""
    if read_in_part(obj):
        raise PartialObject(
            f"{tried}: it was read in part (metadata only, or through a transform), so an update would delete the rest; use patch "
            "or apply, or read it whole with client.get"
        )


def check_new(obj: Object | Unstructured, tried: Attempt) -> None:
    """Refuse to create what was created; the server would answer with an internal error."""
    if resource_version_of(obj):
        raise NotNew(
            f"{tried}: it was read from the server, or made by it, so it is there already; to change it use update, to copy it "
            "build a new object from its spec"
        )


def ignored_status(obj: Object | Unstructured) -> bool:
    """Whether a write of the whole object carries a status of its own, which a server with a status subresource drops."""
    if isinstance(obj, Unstructured):
        return False  # only discovery knows whether the kind has a status subresource
    status: Any = getattr(obj, "status", None)
    if status is None or not has_status_subresource(type(obj)):
        return False
    before = raw_of(obj)
    return before is None or getattr(decode(type(obj), before), "status", None) != status


STATUS_IGNORED = 'the server ignores the status here: write it with save, or with subresource="status"'


def check_key(kind: str, key: object) -> None:
    """Refuse what is no key."""
    if not isinstance(key, (str, tuple)):
        raise TypeError(f'{kind}: {key!r} is no key; write "name", "namespace/name" or Key(namespace, name)')
