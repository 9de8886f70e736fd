"""PostgresCluster: its spec and its status."""

from typing import Annotated

from steersman import PrinterColumn, Quantity, Resource, Spec, Status
from steersman.markers import Immutable, Maximum, Minimum, MinLength, Pattern, Rule


class PostgresClusterSpec(Spec):
    version: Annotated[str, Pattern(r"^[0-9]+(\.[0-9]+)?$")]
    """The version of PostgreSQL; a change rolls through the members, the primary first."""
    storage: Annotated[Quantity, Immutable("a volume cannot change its size; create another cluster")]
    """The size of each member's volume."""
    replicas: Annotated[int, Minimum(0), Maximum(9)] = 0
    """The number of replicas beside the primary."""
    settings: dict[str, str] | None = None
    """Lines of postgresql.conf; a change rolls through the members like a new version."""
    backup_schedule: Annotated[str, MinLength(9)] | None = None
    """When to back up, in cron syntax; no backups if unset."""


class PostgresClusterStatus(Status):
    ready_replicas: int = 0
    endpoint: str | None = None
    """The address of the primary."""


class PostgresCluster(
    Resource[PostgresClusterSpec, PostgresClusterStatus],
    group="postgres.example.com",
    version="v1",
    rules=(Rule(rule="self.metadata.name.matches('^[a-z][-a-z0-9]{0,39}$')", message="not a name for a Service"),),
    columns=(
        PrinterColumn(name="Version", type="string", json_path=".spec.version"),
        PrinterColumn(name="Replicas", type="integer", json_path=".status.readyReplicas"),
        PrinterColumn(name="Ready", type="string", json_path=".status.conditions[?(@.type=='Ready')].status"),
    ),
):
    """A primary, its replicas, and a schedule of backups."""
