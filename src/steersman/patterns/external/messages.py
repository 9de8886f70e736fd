"""What conditions and causes say about an external object."""

from __future__ import annotations

from steersman.patterns.external.entries import Call, Entry

_DOING: dict[Call, str] = {"find": "looking for", "create": "creating", "update": "updating", "delete": "deleting"}
_DONE: dict[Call, str] = {"find": "found", "create": "created", "update": "updated", "delete": "deleted"}


class Messages:
    """The messages about the external objects of one name, such as "bucket"."""

    def __init__(self, name: str, late: float) -> None:
        self._name = name
        self._late = late

    def ended(self, call: Call) -> str:
        """A call succeeded."""
        return f"{self._name} {_DONE[call]}"

    def failed(self, call: Call, why: str) -> str:
        """A call failed."""
        return f"{_DOING[call]} {self._name} failed: {why}"

    def differs(self) -> str:
        """It does not match, and nothing can be done about it."""
        return f"{self._name} does not match the object, and its API has no update: delete it there, or undo the change"

    def unmatched(self) -> str:
        """An update did not help."""
        return f"{self._name} was updated but still does not match the object"

    def incomparable(self, why: str) -> str:
        """The comparison failed."""
        return f"comparing {self._name} with the object failed: {why}"

    def progress(self, entry: Entry) -> str:
        """Work is in progress."""
        if entry.busy:
            return f"{self._name} waits, because the service is busy: {entry.busy}"
        if entry.doubted:
            return (
                f"{self._name} was not found, but a request to create it, also one of an earlier process, may still be in flight;"
                f" Steersman waits up to {self._late:g} s (late=)"
            )
        doing = {"updating": "updated", "creating": "created"}.get(entry.progress, "looked for")
        if entry.goal == "absent":
            doing = "deleted"
        return f"{self._name} is being {doing}"
