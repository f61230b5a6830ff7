"""What becomes of the old snapshots, the small files and the forgotten files of Iceberg tables."""

from lakewriter.spec.model import Model


class Maintenance(Model):
    """How long an Iceberg table keeps what no reader needs any more; None is for good, as without any maintenance.

    ``optimizer_role`` is the role that Glue's optimizers take, by its ARN, or by its name with its path. Without it the
    table's properties say what to expire, and whoever maintains the table does so.
    """

    expire_snapshots_days: int | None = None
    keep_snapshots: int = 1
    compact: bool = False
    delete_orphans_days: int | None = None
    optimizer_role: str | None = None

    @property
    def makes_role(self) -> bool:
        """Whether the stack makes the role of the optimizers: it has a name and no ARN."""
        return self.optimizer_role is not None and not self.optimizer_role.startswith("arn:")
