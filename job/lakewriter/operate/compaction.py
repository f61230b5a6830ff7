"""Compact an Iceberg table: replace its small files, and those with deleted rows, by full ones with the same rows.

A compaction is a change like a load: its files are staged unseen, its intent is bound, and any process finishes it from
the intent alone. Loads go on meanwhile: none depends on it, and it depends on none. The commit compares the files that
were read.
"""

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

import pyarrow as pa

from lakewriter.commit import attempt as attempts
from lakewriter.commit.attempt import Attempt
from lakewriter.commit.iceberg.catalog_vendor import make_data_clients
from lakewriter.commit.iceberg.compact_groups import Choice, Compactable, find_groups
from lakewriter.commit.pipeline import Pipeline
from lakewriter.commit.recover import recover
from lakewriter.control_object import COMPACTED
from lakewriter.errors import LakeError, SpecInvalidError
from lakewriter.receipt import Receipt
from lakewriter.receipts.parts import Receipts
from lakewriter.records.actions import IcebergAction
from lakewriter.records.changes import Compact
from lakewriter.records.facets import CompactIntent
from lakewriter.records.state import TableState
from lakewriter.report import TableReport
from lakewriter.run.placement import (
    find_data_directory,
    find_next_counter,
    number_objects,
    plan_apart,
    plan_iceberg_action,
)
from lakewriter.shape.stored_rows import OnePartition, StoredRowsPlan
from lakewriter.spec.encodings import ParquetEncoding
from lakewriter.spec.layout import ObjectNames
from lakewriter.spec.load_ids import make_compaction_job_id
from lakewriter.spec.specification import MIB
from lakewriter.spec.table_spec import TableSpec
from lakewriter.staging.task import TaskPlan, write_partition

_TICK = timedelta(microseconds=1)
BATCHES_BYTES: Final = 512 * MIB
"""A compaction between two batches replaces so many bytes of files: the next batch waits for it."""


class Upkeep:
    """Plans a change of one table of a pipeline that no load depends on."""

    def __init__(self, pipeline: Pipeline, table: TableSpec) -> None:
        self._pipeline, self._table = pipeline, table
        self._control = pipeline.controls[table.id]

    def _plan_action(self) -> IcebergAction:
        """Return the catalog's action, of a table that was loaded; ``SPEC_INVALID`` for any other."""
        spec = self._pipeline.spec
        if not self._control.state.read().is_loaded:
            raise SpecInvalidError(
                f"table {self._table.id} has no load of pipeline {spec.pipeline!r} yet.",
                remedy="Load it first: lakewriter run LAKE.",
            )
        return plan_iceberg_action(spec, self._table)

    def _make_absence_error(self, action: IcebergAction) -> SpecInvalidError:
        return SpecInvalidError(
            f"table {self._table.id} is not in its catalog: {action.namespace}.{action.table}.",
            remedy="lakewriter verify LAKE --all says what became of its loads.",
        )

    def _begin(self, job_id: str) -> Attempt:
        spec = self._pipeline.spec
        keep = timedelta(days=spec.keep_loads_days)
        return Attempt(spec.pipeline, job_id, uuid.uuid4().hex[:12], datetime.now(UTC), keep)

    def _register(self, attempt: Attempt, names: Mapping[str, ObjectNames]) -> tuple[Attempt, TableState] | None:
        """Register the attempt, which begins after the last commit; None where its job is done."""
        begin = attempts.make_begin_record(attempt, names)
        self._control.write_once(self._control.keys.begin(attempt.job_id, attempt.id), begin)
        began = attempts.register(self._control, attempt, self._pipeline.open_clients)
        if began is None:
            return None
        # Rule compaction-after-commit
        if began.last_commit is not None:
            attempt = replace(attempt, started=max(attempt.started, began.last_commit + _TICK))
        return attempt, began


class Compaction(Upkeep):
    """Compacts one table of a pipeline, at most ``budget`` bytes of its files at a time."""

    def __init__(self, pipeline: Pipeline, table: TableSpec, budget: int) -> None:
        super().__init__(pipeline, table)
        self._budget = budget
        if not pipeline.spec.iceberg:
            raise SpecInvalidError(
                f"table {table.id} is not in an Iceberg catalog: readers list its files, and would see rows twice, or "
                "not at all, while files are replaced.",
                remedy="Make fewer, larger files: load less often, or raise the target size of files. 'mode: refresh' "
                "replaces all files of a table at once.",
            )

    def plan(self) -> Choice:
        """Return what would be replaced. Nothing is changed; ``SPEC_INVALID`` for a table that was never loaded."""
        return self._find().choice

    def run(self) -> TableReport | None:
        """Compact the table; return the report, None where nothing is worth it.

        ``CONCURRENT_LOAD`` where another compaction of the table has taken over.
        """
        state = recover(self._control, self._pipeline.open_clients)
        compactable = self._find()
        if not compactable.choice.groups:
            return None
        attempt = self._begin(make_compaction_job_id(self._table.id, state.committed + 1))
        names = self._name_objects(compactable, attempt)
        registered = self._register(attempt, {self._table.id: names})
        if registered is None:
            return self._control.read_report(attempt.job_id)
        attempt, began = registered
        self._stage_and_bind(compactable, attempt, number_objects(self._control.store, names, began), began)
        attempts.settle(self._control, attempt, self._pipeline.open_clients)
        return self._control.read_report(attempt.job_id)

    def _find(self) -> Compactable:
        spec, action = self._pipeline.spec, self._plan_action()
        read = self._control.state.read
        compactable = find_groups(
            action, self._pipeline.clients, spec.pipeline, read, spec.limits.target_file_bytes, self._budget
        )
        if compactable is None:
            raise self._make_absence_error(action)
        return compactable

    def _bind_names(self, attempt: Attempt) -> ObjectNames:
        return self._table.layout.bind(
            job_id=attempt.job_id, attempt=attempt.id, start=attempt.started, table=self._table.id
        )

    def _name_objects(self, compactable: Compactable, attempt: Attempt) -> ObjectNames:
        names = self._bind_names(attempt)
        access, action = self._pipeline.spec.access, compactable.action
        bucket = action.find_bucket(access.bucket)
        directory = find_data_directory(action.location, bucket, access.key_names, names.directory)
        return replace(names, directory=directory)

    def _stage_and_bind(
        self, compactable: Compactable, attempt: Attempt, names: ObjectNames, began: TableState
    ) -> None:
        receipts: list[Receipt] = []
        try:
            receipts.extend(self._stage(compactable, attempt, names))
            intent = self._make_intent(compactable, attempt, names, began, receipts)
            attempts.bind(self._control, attempt, intent, began, self._pipeline.open_clients)
        except BaseException as error:
            try:
                attempts.give_up(self._control, attempt, names, receipts)
            except LakeError as second:
                error.add_note(f"What was staged could not be withdrawn: {second}")
            raise

    def _stage(self, compactable: Compactable, attempt: Attempt, names: ObjectNames) -> Iterator[Receipt]:
        """Write the rows of each group, as the task of its number would."""
        schema, clients = compactable.schema, make_data_clients(compactable.action, self._pipeline.clients)
        groups, spec = compactable.choice.groups, self._pipeline.spec
        plan = TaskPlan(
            access=spec.access.approve(),
            names=names,
            shape=StoredRowsPlan(schema),
            encoding=self._choose_encoding(schema),
            limits=spec.limits,
            load=attempt.load,
            job_id=attempt.job_id,
            start=attempt.started,
            partition_count=len(groups),
            first_indexes=(0,) * len(groups),
            counts=None,
            apart=plan_apart(compactable.action, self._control, attempt.job_id, attempt.id),
        )
        for number, group in enumerate(groups):
            task = replace(plan, transforms=OnePartition(group.values, group.directory))
            yield from write_partition(task, number, compactable.read_rows(group), iter, clients=clients)

    def _choose_encoding(self, schema: pa.Schema) -> ParquetEncoding:
        encoding = self._table.encoding or self._pipeline.spec.encoding
        assert isinstance(encoding, ParquetEncoding)
        by_name = {name.lower(): name for name in schema.names}
        order = tuple(by_name.get(column.lower(), "") for column in self._table.sort_by)
        return encoding.model_copy(update={"sort_by": order}) if order and all(order) else encoding

    def _make_intent(
        self, compactable: Compactable, attempt: Attempt, names: ObjectNames, began: TableState, receipts: list[Receipt]
    ) -> Compact:
        table, seconds = self._table, (datetime.now(UTC) - attempt.started).total_seconds()
        groups = tuple(group.make_intent() for group in compactable.choice.groups)
        return Compact(
            pipeline=attempt.pipeline,
            job_id=attempt.job_id,
            attempt=attempt.id,
            table_id=table.id,
            schema_name=table.schema_name,
            table=table.name,
            started=attempt.started,
            access=self._pipeline.spec.access,
            catalog=compactable.action,
            receipts=tuple(receipt.for_intent() for receipt in receipts),
            staged_seconds=round(max(seconds, 0.0), 3),
            counter_after=find_next_counter(names, Receipts(tuple(receipts))),
            compact=CompactIntent(snapshot=compactable.snapshot, sequence=compactable.sequence, groups=groups),
            needs=(COMPACTED,),
        )
