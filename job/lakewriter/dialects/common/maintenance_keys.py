"""The key ``maintenance``: bounds of what Iceberg tables keep."""

from typing import Final, Literal

from pydantic import Field, model_validator

from lakewriter.dialects.common.faults import FaultError
from lakewriter.spec.expectations import Duration, to_seconds
from lakewriter.spec.maintenance import Maintenance
from lakewriter.spec.model import FileModel
from lakewriter.spec.specification import Spec

_EVERY: Final = "1 hour"
_ROLE: Final = r"^(arn:aws[a-z-]*:iam::\d{12}:role/)?([\w+=,.@-]+/)*[\w+=,.@-]{1,64}$"


class MaintenanceEntry(FileModel):
    """Bounds what Iceberg tables keep: old snapshots, small files and orphan files. Without it all stay."""

    by: Literal["glue", "run", "command", "service"] | None = None
    """Who does the upkeep: ``glue``, by its optimizers; ``run``, a continuous run, which compacts and expires snapshots
    between its batches; ``command``, calls of ``lakewriter maintain``; ``service``, S3 Tables by itself. By default
    ``service`` in S3 Tables, ``glue`` with an ``optimizer_role``, otherwise ``command``. With an ``optimizer_role``
    snapshots and orphan files are Glue's in any case."""
    every: Duration | None = None
    """With ``by: run``: the shortest time between two compactions and expiries of a table, such as ``30 minutes``. By
    default ``1 hour``."""
    expire_snapshots_days: int | float | None = Field(None, ge=0.05, le=3650)
    """Days that a snapshot is kept, such as ``5``, or ``0.25`` for 6 hours, as the table's property
    ``history.expire.max-snapshot-age-ms``. Time travel, and the undo of a full refresh or a merge, go back no further;
    the last load can be undone in any case. Amazon S3 Tables expires snapshots by itself, by default after
    ``keep_loads_days``."""
    keep_snapshots: int = Field(1, ge=1, le=100_000)
    """The number of snapshots that are kept, however old: ``history.expire.min-snapshots-to-keep``."""
    compact: bool = False
    """Whether small files are compacted. A compacted load is undone with ``--rewrite`` only. Needs ``optimizer_role``,
    ``by: command``, or ``by: run``, which implies it."""
    delete_orphans_days: int | None = Field(None, ge=3, le=3650)
    """Days after which files in a table's folder are deleted that the table does not have. It must be longer than
    ``deployment.abort_incomplete_uploads_days``. Needs ``optimizer_role``, or calls of ``lakewriter maintain`` with
    ``by: command`` or ``by: run``."""
    optimizer_role: str | None = Field(None, pattern=_ROLE)
    """The role that Glue's optimizers take. The stack makes a role of this name; give the name with its path, such as
    ``data/nyc-optimizers``. A role that is there already is given by its ARN."""

    @property
    def compacts_in_glue(self) -> bool:
        """Return whether Glue's optimizers compact."""
        return self.compact and self.by in {None, "glue"}

    @model_validator(mode="after")
    def _needs_role(self) -> "MaintenanceEntry":
        if self.optimizer_role is None:
            given = {"compact": self.compact, "delete_orphans_days": self.delete_orphans_days is not None}
            for key in (key for key, is_given in given.items() if is_given and self.by in {None, "glue"}):
                other = ", or 'by: run' or 'by: command'" if self.by is None else ""
                raise ValueError(
                    f"{key!r} is done by Glue's optimizers; expected 'optimizer_role', the role they take{other}"
                )
        elif self.expire_snapshots_days is None and not self.compacts_in_glue and self.delete_orphans_days is None:
            compact = ", 'compact'" if self.by in {None, "glue"} else ""
            raise ValueError(
                f"'optimizer_role' has nothing to do; expected 'expire_snapshots_days'{compact} or "
                "'delete_orphans_days'"
            )
        return self

    @model_validator(mode="after")
    def _whole_days_in_glue(self) -> "MaintenanceEntry":
        days = self.expire_snapshots_days
        if days is not None and self.optimizer_role is not None and days != int(days):
            raise ValueError(
                f"'expire_snapshots_days' is {days}, and Glue's optimizers expire snapshots by whole days; expected "
                "such a number, or no 'optimizer_role'"
            )
        return self

    @model_validator(mode="after")
    def _who_does_it(self) -> "MaintenanceEntry":
        if self.by == "glue" and self.optimizer_role is None:
            raise ValueError("'by' is 'glue'; expected 'optimizer_role', the role that its optimizers take")
        if self.by == "run" and "compact" in self.model_fields_set and not self.compact:
            raise ValueError("'by' is 'run', which compacts, and 'compact' is false; expected one of them")
        if self.every is not None and self.by != "run":
            raise ValueError("'every' is the time between compactions of a continuous run; expected 'by: run'")
        return self

    def choose_who(self, *, is_served: bool) -> Literal["glue", "run", "command", "service"]:
        """Return who does the upkeep; ``is_served`` says that the catalog's service does it where nobody else is
        named."""
        return self.by or ("service" if is_served else "glue" if self.optimizer_role is not None else "command")


def make_maintenance(
    entry: MaintenanceEntry | None, spec: Spec, *, has_checkpoint: bool, keep_loads_days: int, uploads_days: int
) -> Maintenance | None:
    """Make the maintenance of the file's tables; a fault where their catalog has none, or nobody who does it.
    ``uploads_days`` are those of ``deployment.abort_incomplete_uploads_days``.

    Amazon S3 Tables expires snapshots by itself, after 5 days unless somebody sets another age: by default that of the
    records by which a load is undone.
    """
    if entry is None and spec.table_bucket:
        entry = MaintenanceEntry()
    if entry is None:
        return None
    if entry.expire_snapshots_days is None and spec.table_bucket:
        entry = entry.model_copy(update={"expire_snapshots_days": keep_loads_days})
    service = spec.catalog.service
    if service is None:
        raise FaultError(
            ("maintenance",), "only Iceberg tables have snapshots to expire and files to compact; these are Parquet "
            "files.", remedy="Leave 'maintenance' out.",
        )  # fmt: skip
    if entry.optimizer_role is not None and not spec.in_glue:
        raise FaultError(
            ("maintenance", "optimizer_role"), "Glue's optimizers reach tables of the Glue Data Catalog alone; these "
            "are in another catalog.", remedy="Leave it out; 'lakewriter docs guide-iceberg' has other ways.",
        )  # fmt: skip
    if entry.by == "run" and not has_checkpoint:
        raise FaultError(
            ("maintenance", "by"), "'run' lets a continuous run compact between its batches, and this file has no "
            "'checkpoint' for one.", remedy="Set checkpoint, or 'by: command' and schedule 'lakewriter maintain'.",
        )  # fmt: skip
    _refuse_other_deleters(entry, is_served=not service.abilities.deletes)
    days = entry.delete_orphans_days
    if days is not None and days <= uploads_days:
        raise FaultError(
            ("maintenance", "delete_orphans_days"), f"{days} is too few: an upload of a load may be completed for "
            f"{uploads_days} days (deployment.abort_incomplete_uploads_days), and is as old as its beginning; expected "
            f"{uploads_days + 1} or more.",
        )  # fmt: skip
    of_entry = entry.model_dump(exclude={"by", "every", "compact"})
    every, who = to_seconds(entry.every or _EVERY), entry.choose_who(is_served=not service.abilities.deletes)
    return Maintenance(**of_entry, by=who, every_seconds=every, compact=entry.compact or entry.by == "run")


def _refuse_other_deleters(entry: MaintenanceEntry, *, is_served: bool) -> None:
    """Refuse a service that does no upkeep, and anybody else's deletions where only the service deletes."""
    if entry.by == "service" and not is_served:
        raise FaultError(
            ("maintenance", "by"), "'service' leaves the upkeep to Amazon S3 Tables, and these tables are in another "
            "catalog.", remedy="Set 'by: glue', 'by: run' or 'by: command'.",
        )  # fmt: skip
    if is_served and entry.by in {"run", "command"} and entry.delete_orphans_days is not None:
        raise FaultError(
            ("maintenance", "delete_orphans_days"), f"{entry.by!r} can neither list nor delete objects of Amazon S3 "
            "Tables, which deletes files itself.", remedy="Leave it out, or set 'by: service'.",
        )  # fmt: skip
