"""Write a partition's rows into staged files and return their receipts: a task's work, without Spark's API."""

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import reduce
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from lakewriter.aws import Clients, get_shared_clients
from lakewriter.aws.vended import Vendor
from lakewriter.documents.value_changes import CUT, TRUNCATED
from lakewriter.encode.formats import make_encoder
from lakewriter.encode.parquet_footer import Tail, read_column_statistics
from lakewriter.errors import SourceFailedError, SpecInvalidError, ValueUnrepresentableError
from lakewriter.expect.failing_rows import find_failing
from lakewriter.expect.observing import Observer
from lakewriter.expect.repeated_keys import KeyCounter
from lakewriter.expect.watching import NOTHING, Watched
from lakewriter.naming import LOAD_METADATA, ORDINAL, UNCHANGED
from lakewriter.receipt import Absent, FileFacts, Receipt
from lakewriter.shape.shapers import AnyPlan, make_shaper
from lakewriter.shape.stored_rows import OnePartition, StoredRowsPlan
from lakewriter.shape.table import ORDINAL_FIELD, UNCHANGED_FIELD, Shaped, ShapePlan
from lakewriter.source.bad_rows import FLOOR, SKIPPED, read_absent, read_blank_lines, read_cut
from lakewriter.source.files.file_source import make_bad_row_error
from lakewriter.spec.access import Access
from lakewriter.spec.encodings import FileEncoding
from lakewriter.spec.layout import ObjectNames
from lakewriter.spec.specification import Limits
from lakewriter.staging.copied_files import CopyPlan, FileCopier
from lakewriter.staging.quarantine import QuarantineWriter
from lakewriter.staging.returned import Spill, make_object_writer
from lakewriter.staging.rolling import BATCH_BYTES, CanonicalRows, FileRows
from lakewriter.staging.source_rows import Rows, keep_rows
from lakewriter.staging.upload import ApartBucket, StagedUpload

if TYPE_CHECKING:
    # Importing PyIceberg takes a second: workers do it only where a table has partitions.
    from lakewriter.shape.partitions import Transforms, Values


Packed = TypeVar("Packed")


@dataclass(frozen=True)
class TaskPlan:
    """Everything that a task needs; picklable, without connections.

    load           the value of the objects' load metadata
    first_indexes  each partition's first tracking index
    counts         each partition's number of rows, where they were counted before
    transforms     give each row's Iceberg partition
    vendor         gives the credentials, where the destination has none of its own
    statistics     whether receipts have those of the columns, which only an Iceberg table keeps
    watched        what expectations ask about
    copies         how files that belong to records are copied
    has_ordinals   whether the rows' ordinals are written behind the columns of ``shape``
    lacks_unchanged  whether files say which unchanged values the rows' events leave out
    apart          the bucket of the files, where it is not the destination's
    spill          where receipts go that are too many to return; without it all are returned
    """

    access: Access
    names: ObjectNames
    shape: AnyPlan | StoredRowsPlan
    encoding: FileEncoding
    limits: Limits
    load: str
    job_id: str
    start: datetime
    partition_count: int
    first_indexes: Sequence[int]
    counts: tuple[int, ...] | None
    metadata: Mapping[str, str] = field(default_factory=dict)
    single_file: bool = False
    transforms: "Transforms | OnePartition | None" = None
    vendor: Vendor | None = None
    statistics: bool = True
    spill: Spill | None = None
    watched: Watched = NOTHING
    copies: CopyPlan | None = None
    has_ordinals: bool = False
    lacks_unchanged: bool = False
    apart: ApartBucket | None = None

    @property
    def schema(self) -> pa.Schema:
        """The columns of its files."""
        schema = self.shape.schema.append(ORDINAL_FIELD) if self.has_ordinals else self.shape.schema
        return schema.append(UNCHANGED_FIELD) if self.lacks_unchanged else schema


def write_partition(
    plan: TaskPlan,
    partition: int,
    batches: Iterator[pa.RecordBatch],
    pack: Callable[[Iterator[Receipt]], Iterator[Packed]],
    *,
    clients: Clients | None = None,
    bad: QuarantineWriter | None = None,
    keys: KeyCounter | None = None,
) -> Iterator[Packed]:
    """Yield what ``pack`` makes of the receipts, one for each file as soon as it is staged, none for a partition
    without rows; ``bad`` takes bad rows, ``keys`` the keys of the others.

    If this ends early, by an error of ``pack``, a closed generator or an interrupt too, it aborts every upload it has
    begun.
    """
    writer = _PartitionWriter(plan, partition, clients or get_shared_clients(plan.access, plan.vendor), bad, keys)
    try:
        yield from pack(writer.write_files(batches))
    except BaseException as error:
        writer.abandon(error)
        if bad is not None:
            bad.abandon(error)
        raise


class _PartitionWriter:
    """Writes the files of one partition, numbered ``partition + rolls * partition_count``."""

    def __init__(
        self, plan: TaskPlan, partition: int, clients: Clients, bad: QuarantineWriter | None, keys: KeyCounter | None
    ) -> None:
        self._plan = plan
        self._bad = bad
        self._keys = keys
        self._partition = partition
        self._clients = clients
        self._write_note = make_object_writer(get_shared_clients(plan.access)) if plan.apart else None
        self._encoder = make_encoder(plan.encoding)
        self._next_index = plan.first_indexes[partition]
        self._shaper = make_shaper(plan.shape, job_id=plan.job_id, start=plan.start, first_index=self._next_index)
        self._observer = Observer(plan.watched)
        if bad is not None:
            bad.read_cursor = self._shaper.read_cursor
        self._cut: Counter[str] = Counter()
        self._blank_lines = 0
        self._skipped, self._unchanged = Counter[str](), Counter[str]()
        self._absent: Absent | None = None
        self._uploads: list[StagedUpload] = []
        metadata = {LOAD_METADATA: plan.load, **plan.metadata}
        self._copier = FileCopier(plan.copies, plan.names, plan.access, plan.limits, clients, metadata, partition)
        self._limits = _lift_file_size(plan.limits, groups=self._encoder.footer) if plan.single_file else plan.limits

    def write_files(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Receipt]:
        batch_bytes = min(BATCH_BYTES, self._plan.limits.row_group_bytes)
        for values, run in groupby(self._split_by_partition(self._shape(batches)), itemgetter(0)):
            rows = CanonicalRows(map(itemgetter(1), run), batch_bytes=batch_bytes)
            while rows.peek() is not None:
                yield self._write_file(rows, self._partition + len(self._uploads) * self._plan.partition_count, values)
        yield from self._copier.finish()

    def abandon(self, cause: BaseException) -> None:
        for upload in self._uploads:
            upload.abandon(cause)
        self._copier.abandon(cause)

    def _shape(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        seen = 0
        counted = None if self._plan.counts is None else self._plan.counts[self._partition]
        for batch in batches:
            seen += batch.num_rows
            self._cut.update(read_cut(batch.schema))
            self._blank_lines += read_blank_lines(batch.schema)
            self._absent = Absent.join([self._absent, read_absent(batch.schema)])
            if counted is not None and seen > counted:
                raise self._make_changed_error(counted, f"at least {seen}")
            rows = Rows.of(batch, seen - batch.num_rows)
            rows = self._leave_skipped_out(rows)
            if self._bad is not None:
                rows = self._bad.take_marked(rows)
            elif rows.marks is not None:
                self._require_good(rows.marks)
            if rows.batch.num_rows:
                yield from self._shape_good_rows(replace(rows, batch=self._copier.copy(rows.batch)))
        if counted is not None and seen != counted:
            raise self._make_changed_error(counted, str(seen))

    def _leave_skipped_out(self, rows: Rows) -> Rows:
        """Count the events that are no rows of the table, and return the others without floors."""
        if rows.marks is None:
            return rows
        column = pc.struct_field(rows.marks, "column")
        is_skipped, is_floor = (pc.fill_null(pc.equal(column, mark), False) for mark in (SKIPPED, FLOOR))
        is_row = pc.invert(pc.or_(is_skipped, is_floor))
        if pc.all(is_row).as_py():
            return rows
        self._skipped.update(pc.struct_field(rows.marks, "reason").filter(is_skipped).to_pylist())
        return rows.take(pc.indices_nonzero(is_row))

    def _require_good(self, marks: pa.Array) -> None:
        """Raise the first bad row's error: those of events are marked also where a table sets none aside."""
        bad = marks.filter(pc.struct_field(marks, "reason").is_valid())
        if len(bad):
            mark = bad[0].as_py()
            offset = "" if mark["offset"] is None else f", offset {mark['offset']}"
            raise make_bad_row_error(f"partition {self._partition}: {mark['file'] or 'the source'}{offset}", mark)

    def _shape_good_rows(self, rows: Rows) -> Iterator[pa.RecordBatch]:
        """Yield shaped rows; one that cannot be written goes into the quarantine, or fails the load."""
        try:
            shaped = self._shaper.shape(rows.batch)
            if self._plan.has_ordinals or self._plan.lacks_unchanged:
                shaped = self._add_hidden(rows, shaped)
        except ValueUnrepresentableError as error:
            if self._bad is None:
                document = f" The document is {error.document}." if error.document else ""
                raise ValueUnrepresentableError(
                    f"partition {self._partition}: {error.message}{document}", remedy=error.remedy
                ) from error
            if rows.batch.num_rows == 1:
                self._bad.refuse(rows, error)
                return
        else:
            yield from self._leave_failing_out(rows, shaped)
            return
        for half in rows.split():
            yield from self._shape_good_rows(half)

    def _leave_failing_out(self, rows: Rows, done: Shaped) -> Iterator[pa.RecordBatch]:
        """Yield the shaped rows that no check keeps out; the others go into the quarantine."""
        shaped, typed, checks, watched = *done, rows.checks, self._plan.watched
        failing = find_failing(watched.rules, typed, checks) if watched.rules else []
        if failing:
            assert self._bad is not None
            self._bad.keep_failing(rows, failing, typed, watched.keys)
            good = pc.invert(reduce(pc.or_, (check.mask for check in failing)))
            good_rows = keep_rows(shaped, good)
            # Most shapers return the same batch for both.
            shaped, typed = good_rows, good_rows if typed is shaped else keep_rows(typed, good)
            checks = None if checks is None else checks.filter(good)
        self._observer.observe(typed, checks)
        if self._keys is not None:
            self._keys.add(typed)
        if shaped.num_rows:
            yield shaped

    def _add_hidden(self, rows: Rows, shaped: Shaped) -> Shaped:
        """Add to the columns that are written those that are no columns of the table."""
        columns, shape = list(shaped.rows.columns), self._plan.shape
        assert isinstance(shape, ShapePlan)
        if self._plan.has_ordinals and shape.ordinal is not None:
            columns.append(rows.batch.column(shape.ordinal))
        elif self._plan.has_ordinals:
            # The bits are divided as Spark divides them, where it numbers the rows.
            in_order = pc.add(rows.row_numbers, self._partition << 33)
            columns.append(in_order if rows.ordinals is None else rows.ordinals)
        if self._plan.lacks_unchanged:
            assert rows.marks is not None
            unchanged = shape.name_unchanged(pc.struct_field(rows.marks, "column"))
            for count in pc.value_counts(unchanged.drop_null()).to_pylist():
                _, *names = json.loads(count["values"])
                self._unchanged.update(dict.fromkeys(names, count["counts"]))
            columns.append(unchanged)
        return shaped._replace(rows=pa.RecordBatch.from_arrays(columns, schema=self._plan.schema))

    def _split_by_partition(self, batches: Iterator[pa.RecordBatch]) -> "Iterator[tuple[Values, pa.RecordBatch]]":
        """Yield the rows of one Iceberg partition at a time."""
        transforms = self._plan.transforms
        for batch in batches:
            if transforms is None:
                yield (), batch
            else:
                yield from transforms.split_by_partition(batch)

    def _make_changed_error(self, counted: int, seen: str) -> SourceFailedError:
        return SourceFailedError(
            f"partition {self._partition} had {counted} rows when they were counted and {seen} when they were read: "
            "the source changed in between.",
            remedy="Load from a source that does not change, or set index to 'sparse' so that no count is needed.",
        )

    def _name_key(self, seq: int, values: "Values") -> str:
        names, transforms = self._plan.names, self._plan.transforms
        return names.object_key(seq, transforms.name_directory(values) if transforms is not None else "")

    def _write_file(self, rows: CanonicalRows, seq: int, values: "Values") -> Receipt:
        plan, sent = self._plan, Counter(self._clients.requests)
        if plan.single_file and self._uploads:
            raise SpecInvalidError(
                "later rows are so wide that they need a file of their own, and all files would have one name.",
                remedy="Add {part_number} to file_name_pattern.",
            )
        key = self._name_key(seq, values)
        metadata = {LOAD_METADATA: plan.load, **plan.metadata}
        upload = StagedUpload(
            self._clients.s3, plan.access, key, metadata=metadata, limits=plan.limits, apart=plan.apart,
            write=self._write_note,
        )  # fmt: skip
        self._uploads.append(upload)
        sink = _FileSink(upload)
        file = FileRows(rows, self._limits, sink.tell)
        self._encoder.write(plan.schema, file.take_batches(), sink, file.row_group_rows)
        uploaded = upload.finish()
        footer = sink.tail.metadata() if self._encoder.footer else None
        if footer is not None and footer.num_rows != file.rows:
            raise RuntimeError(f"{self._encoder.name} wrote {footer.num_rows} rows into {key!r}, expected {file.rows}")
        first_index, self._next_index = self._next_index, self._next_index + file.rows
        cursor, cursor_nulls = self._shaper.take_cursor()
        findings = self._shaper.take_findings()
        findings.changes += self._cut.total()
        findings.changed.update({(name, TRUNCATED, CUT): count for name, count in self._cut.items()})
        self._cut.clear()
        (blank_lines, self._blank_lines), (absent, self._absent) = (self._blank_lines, 0), (self._absent, None)
        skipped, unchanged = dict(self._skipped), dict(self._unchanged)
        self._skipped, self._unchanged = Counter(), Counter()
        observed, violations = self._observer.take(file.rows, footer)
        columns = read_column_statistics(footer) if footer is not None and plan.statistics else {}
        # They are no columns of the table.
        columns.pop(ORDINAL, None)
        columns.pop(UNCHANGED, None)
        facts = FileFacts(
            rows=file.rows,
            partition=self._partition,
            seq=seq,
            first_index=first_index,
            engine=self._encoder.name,
            row_groups=file.row_groups if footer is None else footer.num_row_groups,
            requests=dict(self._clients.requests - sent),
            cursor=cursor,
            cursor_nulls=cursor_nulls,
            findings=findings,
            observed=observed,
            violations=violations,
            blank_lines=blank_lines,
            skipped=skipped,
            absent=absent,
            unchanged=unchanged,
            columns=columns,
            partition_values=values,
        )
        return Receipt.of(uploaded, facts)


def _lift_file_size(limits: Limits, *, groups: bool) -> Limits:
    """Return limits for one file of all rows; row groups, where there are any, still bound the memory."""
    row_group = limits.row_group_bytes if groups else sys.maxsize
    return limits.model_copy(update={"target_file_bytes": sys.maxsize, "row_group_bytes": row_group})


class _FileSink:
    """Writes into an upload and keeps the last bytes, which contain the footer."""

    def __init__(self, upload: StagedUpload) -> None:
        self._upload = upload
        self.tail = Tail()

    def write(self, data: bytes) -> int:
        self.tail.write(data)
        return self._upload.write(data)

    def tell(self) -> int:
        return self._upload.tell()
