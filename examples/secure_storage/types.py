"""SecureStorage: its spec and its status."""

from typing import Annotated

from steersman import PrinterColumn, Resource, Spec, Status
from steersman.markers import Immutable, Maximum, Minimum


class SecureStorageSpec(Spec):
    size: Annotated[int, Minimum(1), Maximum(1024)]
    """Gigabytes; changeable."""
    retention: Annotated[int, Minimum(1)] = 30
    """Days during which nothing can be deleted; changeable."""
    region: Annotated[str, Immutable("a bucket cannot move; create another storage")] = "north"


class SecureStorageStatus(Status):
    bucket: str | None = None
    key: str | None = None
    policy: str | None = None


class SecureStorage(
    Resource[SecureStorageSpec, SecureStorageStatus],
    group="storage.example.com",
    version="v1",
    columns=(
        PrinterColumn(name="Bucket", type="string", json_path=".status.bucket"),
        PrinterColumn(name="Ready", type="string", json_path=".status.conditions[?(@.type=='Ready')].status"),
        PrinterColumn(name="Message", type="string", json_path=".status.conditions[?(@.type=='Ready')].message"),
    ),
):
    """An encrypted bucket with a policy; a Secret of the same name holds its ids."""
