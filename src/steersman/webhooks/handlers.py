"""The decorators for handlers, `mutates` and `validates`, and the values that handlers get and return.

Guarantees
- The decorated function stays callable, so a test needs no server.
- Warnings and audit annotations are values: a handler returns them in `Admitted`, or raises them in `Denied`.
- A wrong declaration raises `TypeError` when the module is imported, and the message says what to write.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, get_args

from steersman.errors import ApiError
from steersman.objects import AdmissionOperation, Key, Object, UserInfo
from steersman.objects.field_problems import FieldProblem

T = TypeVar("T", bound=Object)
P = ParamSpec("P")
R = TypeVar("R")

_OPERATIONS: tuple[AdmissionOperation, ...] = get_args(AdmissionOperation)
_NO_KEY = Key("", "")
_WRITES: tuple[AdmissionOperation, ...] = ("CREATE", "UPDATE")


@dataclass(frozen=True, slots=True, kw_only=True)
class Review(Generic[T]):
    """The context of a request: the optional second argument of a handler.

    ``old`` is the object before an update or a deletion, and None for a creation.
    """

    operation: AdmissionOperation = "CREATE"
    old: T | None = None
    user: UserInfo = field(default_factory=UserInfo)
    dry_run: bool = False
    #: Namespace and name; the name is empty if the server generates it later.
    key: Key = _NO_KEY
    #: Such as "status"; empty for the object itself.
    subresource: str = ""
    #: The uid of this review.
    uid: str = ""


def _no_annotations() -> Mapping[str, str]:
    return {}


@dataclass(frozen=True, slots=True)
class Admitted(Generic[T]):
    """The return value of a handler with warnings or audit annotations.

    ``return Admitted(site, warnings=["spec.image is deprecated"])``: clients print the warnings, and the audit log of
    the API server records the annotations.
    """

    object: T | None = None
    warnings: Iterable[str] = field(default=(), kw_only=True)
    audit_annotations: Mapping[str, str] = field(default_factory=_no_annotations, kw_only=True)


class Denied(ApiError):
    """Raised by a handler to deny the request: ``raise Denied(invalid("spec.replicas", 99, "must be at most 50"))``.

    A problem is a text, or a `FieldProblem` with the path of a field. The functions of
    ``steersman.objects.field_problems`` create such problems: `invalid`, `required`, `forbidden` and others. Pass all
    problems at once, so that a user can fix them in one attempt.
    """

    def __init__(
        self,
        *problems: str | FieldProblem,
        warnings: Iterable[str] = (),
        audit_annotations: Mapping[str, str] | None = None,
    ) -> None:
        if not problems:
            raise TypeError('Denied() needs a reason: write Denied("why"), or Denied(forbidden("spec.host", "why"))')
        super().__init__(*problems)
        self.problems = problems
        self.warnings = tuple(warnings)
        self.audit_annotations = dict(audit_annotations or {})

    def __str__(self) -> str:
        return ", ".join(map(str, self.problems))


class AdmissionHandler(Generic[P, R]):
    """A decorated function. Call it like the function, or pass it to ``manager.add`` to make it a webhook."""

    def __init__(
        self, function: Callable[P, R], kind: type[Object], operations: tuple[AdmissionOperation, ...], *, mutates: bool
    ) -> None:
        self.function = function
        self.kind = kind
        self.operations = operations
        self.mutates = mutates
        self.name: str = getattr(function, "__name__", type(function).__name__)
        self.takes_review = _takes_review(function, f"@{self._decorator}({kind.__name__}), {self.name}")
        functools.update_wrapper(self, function)

    def __call__(self, *arguments: P.args, **named: P.kwargs) -> R:
        """Call the function."""
        return self.function(*arguments, **named)

    def __repr__(self) -> str:
        return f"<{self.name}: {self._decorator} {self.kind.__name__}>"

    @property
    def _decorator(self) -> str:
        return "mutates" if self.mutates else "validates"


def mutates(
    kind: type[T], *, operations: Iterable[AdmissionOperation] = _WRITES
) -> Callable[[Callable[Concatenate[T, P], R]], AdmissionHandler[Concatenate[T, P], R]]:
    """Make a function, async or not, a webhook that changes objects before the server stores them.

    ```python
    @mutates(Site)
    def site_defaults(site: Site) -> Site:
        site.spec.image = site.spec.image or "nginx"
        return site
    ```

    The function changes and returns the given object, or returns a copy of it, or an `Admitted` with either. Only the
    difference is sent. If it has a second parameter, that is the `Review`. The server may call the function several
    times for one write, so it must be idempotent.
    """
    chosen = _checked(kind, operations, "mutates")
    if "DELETE" in chosen:
        raise TypeError(f"@mutates({kind.__name__}): a deletion has no object to change; use @validates for DELETE")

    def decorate(function: Callable[Concatenate[T, P], R]) -> AdmissionHandler[Concatenate[T, P], R]:
        return AdmissionHandler(function, kind, chosen, mutates=True)

    return decorate


def validates(
    kind: type[T], *, operations: Iterable[AdmissionOperation] = _WRITES
) -> Callable[[Callable[Concatenate[T, P], R]], AdmissionHandler[Concatenate[T, P], R]]:
    """Make a function, async or not, a webhook that rejects objects by raising `Denied`.

    ```python
    @validates(Site, operations=("UPDATE", "DELETE"))
    def site_checks(site: Site, review: Review[Site]) -> None:
        if review.operation == "DELETE" and site.spec.protected:
            raise Denied("the site is protected")
    ```

    The function gets the object as the server would store it, or the object to delete. It returns None, or an
    `Admitted` with warnings. It must not change the object.
    """
    chosen = _checked(kind, operations, "validates")

    def decorate(function: Callable[Concatenate[T, P], R]) -> AdmissionHandler[Concatenate[T, P], R]:
        return AdmissionHandler(function, kind, chosen, mutates=False)

    return decorate


def _checked(kind: object, operations: Iterable[str], decorator: str) -> tuple[AdmissionOperation, ...]:
    if not (isinstance(kind, type) and issubclass(kind, Object) and hasattr(kind, "__resource__")):
        raise TypeError(f"@{decorator}({kind!r}): pass the class of a kind, such as @{decorator}(Site)")
    where = f"@{decorator}({kind.__name__})"
    if isinstance(operations, str):
        raise TypeError(f"{where}: operations is a collection; write operations=({operations!r},)")
    wanted = tuple(operations)
    for each in wanted:
        if each not in _OPERATIONS or each == "CONNECT":
            raise TypeError(f"{where}: unknown operation {each!r}; the operations are CREATE, UPDATE and DELETE")
    if not wanted:
        raise TypeError(f"{where}: operations is empty; omit it for CREATE and UPDATE")
    return tuple(each for each in _OPERATIONS if each in wanted)


def _takes_review(function: Callable[..., Any], where: str) -> bool:
    """Whether a function has a second parameter. Raises `TypeError` if it cannot be called with one or two arguments."""
    signature = inspect.signature(function)
    for arguments in ((None, None), (None,)):
        try:
            signature.bind(*arguments)
        except TypeError:
            continue
        return len(arguments) == 2
    raise TypeError(f"{where}: the function takes the object, and optionally the Review; write def f(site, review)")
