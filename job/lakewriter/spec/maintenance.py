"""Bounds of what Iceberg tables keep: old snapshots, small files and orphan files."""

from typing import Literal

from lakewriter.spec.model import Model


class Maintenance(Model):
    """The days that an Iceberg table keeps what no reader needs any more; None keeps it forever, as without any
    maintenance.

    ``by`` says who does the upkeep: Glue's optimizers, a continuous run at least ``every_seconds`` apart, calls of the
    command, or the catalog's own service. ``optimizer_role`` is the role that Glue's optimizers take, by its ARN, or by
    its name with its path: with it, they expire snapshots and delete orphans also where others compact.
    """

    by: Literal["glue", "run", "command", "service"] = "command"
    every_seconds: int = 3600
    expire_snapshots_days: int | float | None = None
    keep_snapshots: int = 1
    compact: bool = False
    delete_orphans_days: int | None = None
    optimizer_role: str | None = None

    @property
    def compacts_here(self) -> bool:
        """Return whether a run or a command of ours compacts."""
        return self.compact and self.by in {"run", "command"}

    @property
    def deletes_here(self) -> bool:
        """Return whether a run or a command of ours expires snapshots and deletes orphans, as far as days are given."""
        return self.optimizer_role is None and self.by in {"run", "command"}

    @property
    def makes_role(self) -> bool:
        """Return whether the stack makes the role of the optimizers: it has a name and no ARN."""
        return self.optimizer_role is not None and not self.optimizer_role.startswith("arn:")

    def find_role_arn(self, partition: str, account: str) -> str:
        """Find the ARN of the optimizers' role; one that has a name is in this account."""
        role = self.optimizer_role or ""
        return f"arn:{partition}:iam::{account}:role/{role}" if self.makes_role else role
