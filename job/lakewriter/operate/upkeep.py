"""Keep Iceberg tables up as ``maintenance`` has it: compact them, expire their snapshots, delete their orphan files."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Final

from lakewriter.commit.iceberg.compact_groups import Choice
from lakewriter.commit.iceberg.expire_snapshots import Expirable, UnusedFiles
from lakewriter.commit.iceberg.orphans import Locations, Orphans, delete_orphans, find_orphans, list_locations
from lakewriter.commit.pipeline import Pipeline
from lakewriter.commit.recover import recover
from lakewriter.errors import SpecInvalidError
from lakewriter.operate.compaction import BATCHES_BYTES, Compaction
from lakewriter.operate.expiry import Expiry
from lakewriter.records.changes import Compact, Intent
from lakewriter.report import TableReport
from lakewriter.run.placement import S3_SCHEMES, plan_iceberg_action
from lakewriter.spec.maintenance import Maintenance
from lakewriter.spec.table_spec import TableSpec


@dataclass(frozen=True)
class UpkeepPlan:
    """The upkeep of one table as planned; None for a part that is not asked for."""

    compaction: Choice | None
    expiry: Expirable | None
    unused: UnusedFiles | None
    orphans: Orphans | None


@dataclass(frozen=True)
class UpkeepDone:
    """The upkeep of one table as done; None for a part that is not asked for, or had nothing to do."""

    compaction: TableReport | None
    expiries: tuple[TableReport, ...]
    orphans: Orphans | None


class TableMaintenance:
    """Does the parts of ``maintenance`` that are neither Glue's nor the catalog's service's, table after table."""

    def __init__(self, pipeline: Pipeline, budget: int) -> None:
        self._pipeline, self._budget = pipeline, budget
        self._rules = _require_rules(pipeline.spec.maintenance)
        self._locations: dict[str, Locations] = {}

    def plan(self, table: TableSpec) -> UpkeepPlan:
        """Return what would be done to a table. Nothing is changed."""
        if not self._is_loaded(table):
            return UpkeepPlan(None, None, None, None)
        compaction, expiry = self._open_compaction(table), _open_expiry(self._pipeline, table)
        expirable = expiry.plan() if expiry is not None else None
        return UpkeepPlan(
            compaction.plan() if compaction is not None else None,
            expirable,
            expirable.find_unused() if expirable is not None else None,
            self._find_orphans(table),
        )

    def run(self, table: TableSpec) -> UpkeepDone:
        """Keep a table up: small files go before old snapshots, which may have them alone, and those before orphans."""
        if not self._is_loaded(table):
            return UpkeepDone(None, (), None)
        compaction, expiry = self._open_compaction(table), _open_expiry(self._pipeline, table)
        compacted = compaction.run() if compaction is not None else None
        # One change removes a bounded number of snapshots.
        expired = tuple(iter(expiry.run, None)) if expiry is not None else ()
        recover(self._pipeline.controls[table.id], self._pipeline.open_clients)
        orphans = self._find_orphans(table)
        if orphans is not None and orphans.entries:
            delete_orphans(plan_iceberg_action(self._pipeline.spec, table), self._pipeline.clients, orphans)
        return UpkeepDone(compacted, expired, orphans)

    def _is_loaded(self, table: TableSpec) -> bool:
        return self._pipeline.controls[table.id].state.read().is_loaded

    def _open_compaction(self, table: TableSpec) -> Compaction | None:
        return Compaction(self._pipeline, table, self._budget) if self._rules.compacts_here else None

    def _find_orphans(self, table: TableSpec) -> Orphans | None:
        days = self._rules.delete_orphans_days
        if days is None or not self._rules.deletes_here:
            return None
        spec, control = self._pipeline.spec, self._pipeline.controls[table.id]
        action = plan_iceberg_action(spec, table)
        if action.namespace not in self._locations:
            self._locations[action.namespace] = list_locations(action, self._pipeline.clients)
        others = self._locations[action.namespace]
        beside = [folder for name, folders in others.items() if name != action.table for folder in folders]
        return find_orphans(
            action,
            self._pipeline.clients,
            spec.pipeline,
            control.state.read,
            control.require_time() - timedelta(days=days),
            [*beside, *self._beside],
            lambda: (location for intent in control.list_pending() for location in _list_named(intent)),
        )

    @cached_property
    def _beside(self) -> tuple[str, ...]:
        """The folders in S3 that the file names for anything but a table's own files."""
        spec, bucket = self._pipeline.spec, self._pipeline.spec.access.bucket
        given = [path for table in spec.tables for path in table.read.needed_paths]
        given += [spec.checkpoint] if spec.checkpoint is not None else []
        quarantines = [f"{bucket}/{table.quarantine}/" for table in spec.tables if table.quarantine is not None]
        split = (path.partition("://") for path in given)
        return (*quarantines, *(rest for scheme, _, rest in split if scheme in S3_SCHEMES))


def _require_rules(rules: Maintenance | None) -> Maintenance:
    """Return the rules; ``SPEC_INVALID`` where they leave nothing to a run or a command."""
    if rules is None:
        raise SpecInvalidError(
            "the file has no 'maintenance', which says what is compacted, expired and deleted.",
            remedy="Set maintenance: {by: command, compact: true, expire_snapshots_days: 5}.",
        )
    has_days = rules.expire_snapshots_days is not None or rules.delete_orphans_days is not None
    if not rules.compacts_here and not (rules.deletes_here and has_days):
        who = {"glue": "Glue's optimizers do", "service": "the catalog's service does"}.get(rules.by)
        why = f"{who} it" if who is not None else "it names nothing to do"
        raise SpecInvalidError(
            f"'maintenance' leaves nothing to this command: {why}.",
            remedy="Set 'by: command' without 'optimizer_role', and compact, expire_snapshots_days or "
            "delete_orphans_days.",
        )
    return rules


def _open_expiry(pipeline: Pipeline, table: TableSpec) -> Expiry | None:
    rules = pipeline.spec.maintenance
    is_served = bool(pipeline.spec.table_bucket)
    if rules is None or is_served or not rules.deletes_here or rules.expire_snapshots_days is None:
        return None
    return Expiry(pipeline, table, rules.expire_snapshots_days, rules.keep_snapshots)


def _list_named(intent: Intent) -> Iterator[str]:
    """Yield the locations of the objects that an intent needs."""
    bucket = intent.bucket
    keys = [*(receipt.key for receipt in intent.list_staged()), *(key for key, _ in intent.effects.ends)]
    yield from (f"s3://{bucket}/{key}" for key in keys)
    if (undone := intent.effects.removes) is not None:
        yield from undone.locations
    if isinstance(intent, Compact):
        for group in intent.compact.groups:
            yield from (*group.removes, *group.deletes)


def _compact_between_batches(pipeline: Pipeline, table: TableSpec) -> TableReport | None:
    """Compact a table that a continuous run loads, a part at a time."""
    return Compaction(pipeline, table, BATCHES_BYTES).run()


def _expire_between_batches(pipeline: Pipeline, table: TableSpec) -> TableReport | None:
    """Expire snapshots of a table that a continuous run loads, as many as one change takes."""
    expiry = _open_expiry(pipeline, table)
    return expiry.run() if expiry is not None else None


BETWEEN_BATCHES: Final[tuple[Callable[[Pipeline, TableSpec], TableReport | None], ...]] = (
    _compact_between_batches,
    _expire_between_batches,
)
"""The upkeep of a table by a continuous run, between two batches."""
