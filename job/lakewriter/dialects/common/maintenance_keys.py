"""The key ``maintenance``: bounds of what Iceberg tables keep."""

from typing import Final

from pydantic import Field, model_validator

from lakewriter.dialects.common.faults import FaultError
from lakewriter.spec.maintenance import Maintenance
from lakewriter.spec.model import FileModel
from lakewriter.spec.specification import Spec

_ROLE: Final = r"^(arn:aws[a-z-]*:iam::\d{12}:role/)?([\w+=,.@-]+/)*[\w+=,.@-]{1,64}$"


class MaintenanceEntry(FileModel):
    """Bounds what Iceberg tables keep: old snapshots, small files and orphan files. Without it all stay."""

    expire_snapshots_days: int | None = Field(None, ge=1, le=3650)
    """Days that a snapshot is kept, as the table's property ``history.expire.max-snapshot-age-ms``. Time travel, and
    the undo of a full refresh, go back no further. Glue's optimizer expires snapshots if there is an
    ``optimizer_role``; otherwise another tool has to do so."""
    keep_snapshots: int = Field(1, ge=1, le=100_000)
    """The number of snapshots that are kept, however old: ``history.expire.min-snapshots-to-keep``."""
    compact: bool = False
    """Lets Glue compact small files. A compacted load is undone with ``--rewrite`` only. Needs ``optimizer_role``."""
    delete_orphans_days: int | None = Field(None, ge=3, le=3650)
    """Days after which Glue deletes files in a table's folder that the table does not have. It must be longer than
    ``deployment.abort_incomplete_uploads_days``. Needs ``optimizer_role``."""
    optimizer_role: str | None = Field(None, pattern=_ROLE)
    """The role that Glue's optimizers take. The stack makes a role of this name; give the name with its path, such as
    ``data/nyc-optimizers``. A role that is there already is given by its ARN."""

    @model_validator(mode="after")
    def _needs_role(self) -> "MaintenanceEntry":
        if self.optimizer_role is None:
            given = {"compact": self.compact, "delete_orphans_days": self.delete_orphans_days is not None}
            for key in (key for key, is_given in given.items() if is_given):
                raise ValueError(f"{key!r} is done by Glue's optimizers; expected 'optimizer_role', the role they take")
        elif self.expire_snapshots_days is None and not self.compact and self.delete_orphans_days is None:
            raise ValueError(
                "'optimizer_role' has nothing to do; expected 'expire_snapshots_days', 'compact' or "
                "'delete_orphans_days'"
            )
        return self


def make_maintenance(entry: MaintenanceEntry | None, spec: Spec) -> Maintenance | None:
    """Make the maintenance of the file's tables; a fault where their catalog has none."""
    if entry is None:
        return None
    if not spec.iceberg:
        raise FaultError(
            ("maintenance",), "only Iceberg tables have snapshots to expire and files to compact; these are Parquet "
            "files.", remedy="Leave 'maintenance' out.",
        )  # fmt: skip
    if entry.optimizer_role is not None and not spec.in_glue:
        raise FaultError(
            ("maintenance", "optimizer_role"), "Glue's optimizers reach tables of the Glue Data Catalog alone; these "
            "are in another catalog.", remedy="Leave it out; 'lakewriter docs guide-iceberg' has other ways.",
        )  # fmt: skip
    return Maintenance(**entry.model_dump())
