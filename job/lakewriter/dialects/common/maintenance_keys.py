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

    by: Literal["glue", "run", "command"] | None = None
    """Who compacts: ``glue``, by its optimizers; ``run``, a continuous run between its batches; ``command``, calls of
    ``lakewriter compact``. By default ``glue`` with an ``optimizer_role``, otherwise ``command``."""
    every: Duration | None = None
    """With ``by: run``: the shortest time between two compactions of a table, such as ``30 minutes``. By default
    ``1 hour``."""
    expire_snapshots_days: int | None = Field(None, ge=1, le=3650)
    """Days that a snapshot is kept, as the table's property ``history.expire.max-snapshot-age-ms``. Time travel, and
    the undo of a full refresh, go back no further. Glue's optimizer expires snapshots if there is an
    ``optimizer_role``, and Amazon S3 Tables by itself, by default after ``keep_loads_days``; otherwise another tool has
    to do so."""
    keep_snapshots: int = Field(1, ge=1, le=100_000)
    """The number of snapshots that are kept, however old: ``history.expire.min-snapshots-to-keep``."""
    compact: bool = False
    """Lets Glue compact small files. A compacted load is undone with ``--rewrite`` only. Needs ``optimizer_role``, or
    ``by: run``, which implies it."""
    delete_orphans_days: int | None = Field(None, ge=3, le=3650)
    """Days after which Glue deletes files in a table's folder that the table does not have. It must be longer than
    ``deployment.abort_incomplete_uploads_days``. Needs ``optimizer_role``."""
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
            given = {"compact": self.compacts_in_glue, "delete_orphans_days": self.delete_orphans_days is not None}
            for key in (key for key, is_given in given.items() if is_given):
                other = ", or 'by: run'" if key == "compact" and self.by is None else ""
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
    def _who_compacts(self) -> "MaintenanceEntry":
        if self.by == "glue" and not self.compact:
            raise ValueError("'by' is 'glue', whose optimizers compact; expected 'compact: true'")
        if self.by == "command" and self.compact:
            raise ValueError(
                "'compact' lets Glue or a run compact, and 'by: command' leaves it to 'lakewriter compact'; expected "
                "one of them"
            )
        if self.by == "run" and "compact" in self.model_fields_set and not self.compact:
            raise ValueError("'by' is 'run', which compacts, and 'compact' is false; expected one of them")
        if self.every is not None and self.by != "run":
            raise ValueError("'every' is the time between compactions of a continuous run; expected 'by: run'")
        return self

    def choose_who(self) -> Literal["glue", "run", "command"]:
        """Return who compacts."""
        return self.by or ("glue" if self.optimizer_role is not None else "command")


def make_maintenance(
    entry: MaintenanceEntry | None, spec: Spec, *, has_checkpoint: bool, keep_loads_days: int
) -> Maintenance | None:
    """Make the maintenance of the file's tables; a fault where their catalog has none, or no run that compacts.

    Amazon S3 Tables expires snapshots by itself, after 5 days unless somebody sets another age: by default that of the
    records by which a load is undone.
    """
    if entry is None and spec.table_bucket:
        entry = MaintenanceEntry()
    if entry is None:
        return None
    if entry.expire_snapshots_days is None and spec.table_bucket:
        entry = entry.model_copy(update={"expire_snapshots_days": keep_loads_days})
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
    if entry.by == "run" and not has_checkpoint:
        raise FaultError(
            ("maintenance", "by"), "'run' lets a continuous run compact between its batches, and this file has no "
            "'checkpoint' for one.", remedy="Set checkpoint, or leave 'by' out and schedule 'lakewriter compact'.",
        )  # fmt: skip
    of_entry = entry.model_dump(exclude={"by", "every", "compact"})
    every = to_seconds(entry.every or _EVERY)
    return Maintenance(
        **of_entry, by=entry.choose_who(), every_seconds=every, compact=entry.compact or entry.by == "run"
    )
