"""Objects with a kind: `Object` for any, `Resource` for the usual form with spec and status.

```python
class SiteSpec(Spec):
    image: str
    replicas: Annotated[int, Minimum(0), Maximum(50)] = 1

class SiteStatus(Status):
    ready_replicas: int = 0

class Site(Resource[SiteSpec, SiteStatus], group="web.example.com", version="v1"):
    \"\"\"A web site served by a Deployment.\"\"\"
```
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Generic, TypeVar, cast

from steersman.markers import ListMap
from steersman.objects.conditions import Condition
from steersman.objects.hints import declared_hints, structs_in, structs_of
from steersman.objects.identity import GroupVersionKind, GroupVersionResource, Key
from steersman.objects.metadata import ObjectMeta
from steersman.objects.options import ResourceOptions
from steersman.objects.struct import Struct


class Spec(Struct):
    """Base of the desired state: a resource's ``spec`` and the structs inside it."""


class Status(Struct):
    """Base of the reported state: a resource's ``status``."""

    observed_generation: int | None = None
    conditions: Annotated[list[Condition], ListMap("type")] | None = None


SpecT = TypeVar("SpecT", bound=Struct)
StatusT = TypeVar("StatusT", bound=Struct | None)


class Object(Struct):
    """Any object with an apiVersion, a kind and metadata."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta

    __may_be_a_kind__: ClassVar[bool] = True
    __resource__: ClassVar[ResourceOptions]

    @property
    def key(self) -> Key:
        """Namespace and name."""
        try:
            return Key(self.metadata.namespace or "", self.metadata.name or "")
        except AttributeError:
            given = type(self.metadata).__name__
            raise TypeError(
                f'{type(self).__name__}: metadata is a {given}; write metadata=ObjectMeta(name="...")'
            ) from None

    @property
    def uid(self) -> str:
        """Identifies this object among others of the same name, earlier or later; empty until it is created."""
        return self.metadata.uid or ""

    @property
    def generation(self) -> int:
        """How often the desired state has changed; 0 before creation, and for kinds without a generation."""
        return self.metadata.generation or 0

    @property
    def deleting(self) -> bool:
        """Whether its deletion has begun; its finalizers and its grace period decide when it ends."""
        return self.metadata.deletion_timestamp is not None

    @classmethod
    def gvk(cls) -> GroupVersionKind:
        """Group, version and kind of this class."""
        options = cls.__resource__
        return GroupVersionKind(options.group, options.version, options.kind)

    @classmethod
    def gvr(cls) -> GroupVersionResource:
        """Group, version and resource of this class."""
        options = cls.__resource__
        return GroupVersionResource(options.group, options.version, options.plural)


class Resource(Object, Generic[SpecT, StatusT]):
    """An object with a spec and a status: the form of a custom resource.

    ```python
    class Site(Resource[SiteSpec, SiteStatus], group="web.example.com", version="v1", short_names=("st",)):
        \"\"\"A web site served by a Deployment.\"\"\"
    ```

    ``SiteSpec`` derives from `Spec` and ``SiteStatus`` from `Status`. ``Resource[SiteSpec, None]`` has no status.
    """

    spec: SpecT

    status: StatusT | None = None

    __generic_resource__: ClassVar[bool] = True

    def ensure_status(self) -> StatusT:
        """The status: ``site.ensure_status().ready_replicas = 3``. Sets a new one if the object has none."""
        if self.status is None:
            declared = structs_in(declared_hints(type(self))["status"])
            if not declared:
                raise TypeError(
                    f"{type(self).__name__} has no status: declare one, as in Resource[SiteSpec, SiteStatus]"
                )
            self.status = cast("StatusT", declared[0]())
        return cast("StatusT", self.status)

    @classmethod
    def __class_getitem__(cls, parameters: object) -> Any:
        if cls is Resource and (not isinstance(parameters, tuple) or len(cast("tuple[Any, ...]", parameters)) != 2):
            spec = getattr(cast("object", parameters), "__name__", "SiteSpec")
            raise TypeError(
                f"Resource[{spec}] needs a spec and a status; write Resource[{spec}, Status] or a subclass of Status, or"
                f" Resource[{spec}, None] if the kind has no status"
            )
        if cls is Resource:
            spec, status = cast("tuple[Any, Any]", parameters)
            if isinstance(spec, type) and issubclass(spec, Status):
                shown = getattr(cast("object", status), "__name__", status)
                raise TypeError(
                    f"Resource[{spec.__name__}, {shown}] has its status first; write Resource[{shown}, {spec.__name__}]"
                )
        return super().__class_getitem__(parameters)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]

    @classmethod
    def __check__(cls) -> None:
        """Check markers and types of everything the resource contains, as soon as all names are defined."""
        waiting: list[type[Struct]] = [cls]
        seen: set[type[Struct]] = set()
        while waiting:
            current = waiting.pop()
            if current not in seen:
                seen.add(current)
                try:
                    declared_hints(current)
                except TypeError:
                    continue  # uses names defined later in the module: checked on first use
                waiting.extend(structs_of(current))


class PartialObjectMetadata(Object, group="meta.k8s.io", version="v1"):
    """An object of any kind with its metadata alone."""
