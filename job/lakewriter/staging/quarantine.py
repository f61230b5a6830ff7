"""Stage the rows that a task keeps out of its table as Parquet files of the table's quarantine."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from lakewriter.aws import Clients
from lakewriter.documents.types import CHANGES, DATA, DOCUMENTS, EMITTED
from lakewriter.documents.values_to_text import WHOLE, join, render_members
from lakewriter.encode.formats import make_encoder
from lakewriter.errors import ValueUnrepresentableError
from lakewriter.expect.failing_rows import Failing
from lakewriter.expect.observing import add_rows
from lakewriter.naming import LOAD_METADATA
from lakewriter.receipt import MOST_BAD_ROWS_SHOWN, Cursor, FileFacts, Receipt, SetAside, Violations
from lakewriter.shape.cursor import choose_higher
from lakewriter.source.bad_rows import FIELDS
from lakewriter.spec.access import Access
from lakewriter.spec.encodings import ParquetEncoding
from lakewriter.spec.quarantine_names import ON_BAD_ROW, QuarantineNames
from lakewriter.spec.specification import MIB, Limits
from lakewriter.staging.rolling import measure_batch
from lakewriter.staging.source_rows import Rows
from lakewriter.staging.upload import StagedUpload

QUARANTINE_SCHEMA: Final = pa.schema(
    [
        pa.field("_lake_check", pa.string()),
        pa.field("_lake_reasons", pa.list_(pa.string())),
        pa.field("_lake_source", pa.string()),
        pa.field("_lake_offset", pa.int64()),
        pa.field("_lake_row", pa.string()),
        pa.field("_lake_line", pa.string()),
        pa.field("_lake_message", pa.string()),
        pa.field("_lake_job_id", pa.string()),
        pa.field("_lake_at", pa.timestamp("us", tz="UTC")),
    ]
)
"""The columns of every quarantine.

_lake_check    the check that keeps the row out, the first of several
_lake_reasons  all that is wrong with it, in words
_lake_source   the file that it was read from, or its partition of the source
_lake_offset   where it begins: the byte in the file, or the number in the partition
_lake_row      the source's columns as JSON; null for a line that could not be read
_lake_line     such a line, unchanged; null for other rows
_lake_message  what a message says of its record besides the data, as JSON; null for other rows
_lake_job_id   the load that kept it out
_lake_at       when that load began
"""

CODEC: Final = "zstd"
"""JSON takes gzip more than twice the time, for larger files."""
_FILE_BYTES: Final = 32 * MIB
"""Bytes of rows that are held for one file, before they are encoded."""
_RENDERED_BYTES: Final = 2 * MIB
"""Bytes of rows that are rendered at once: as text they have twice as many or more."""
_SHOWN: Final = 200
"""Characters of a row in its description."""


@dataclass(frozen=True)
class QuarantinePlan:
    """The plan of what one load writes into a table's quarantine, in ``partitions`` tasks; ``load`` is the value of the
    objects' load metadata."""

    names: QuarantineNames
    access: Access
    limits: Limits
    load: str
    job_id: str
    start: datetime
    partitions: int


@dataclass
class _Held:
    """The rows of one check that are not written yet; those ``unrendered`` are as the source has them, each batch with
    the columns of the quarantine that it has by now."""

    batches: list[pa.RecordBatch] = field(default_factory=list)
    size: int = 0
    unrendered: list[tuple[pa.RecordBatch, pa.RecordBatch]] = field(default_factory=list)
    unrendered_size: int = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows as the quarantine has them."""
        self.batches.append(batch)
        self.size += measure_batch(batch)

    def add_unrendered(self, source: pa.RecordBatch, columns: pa.RecordBatch) -> None:
        """Add rows, and render them when they are many: each batch costs some time for itself."""
        if self.unrendered and not source.schema.equals(self.unrendered[0][0].schema):
            self.render()
        self.unrendered.append((source, columns))
        self.unrendered_size += measure_batch(source)
        if self.unrendered_size >= _RENDERED_BYTES:
            self.render()

    def render(self) -> None:
        """Render the rows that are not yet."""
        if self.unrendered:
            sources, columns = zip(*self.unrendered, strict=True)
            self.unrendered, self.unrendered_size = [], 0
            self.add(_set_rows(pa.concat_batches(columns), render_rows(pa.concat_batches(sources))))


class QuarantineWriter:
    """Stages and counts the bad rows of one partition: a file for each check, or several if its rows are many.

    ``read_cursor`` gives the highest cursor of rows.
    """

    def __init__(self, plan: QuarantinePlan, partition: int, clients: Clients) -> None:
        self.read_cursor: Callable[[pa.RecordBatch], Cursor | None] = lambda _: None
        self._rows = 0
        self._keys: list[str] = []
        self._samples: list[str] = []
        self._plan, self._partition, self._clients = plan, partition, clients
        self._encoder = make_encoder(ParquetEncoding(codec=CODEC))
        self._held: dict[str, _Held] = {}
        self._uploads: list[StagedUpload] = []
        self.receipts: list[Receipt] = []
        self._cursor: Cursor | None = None
        self._violations: dict[str, Violations] = {}

    def take_marked(self, rows: Rows) -> Rows:
        """Keep the rows that are marked as bad; return the others."""
        if rows.marks is None:
            return rows
        is_bad = pc.struct_field(rows.marks, "reason").is_valid()
        bad = pc.indices_nonzero(is_bad)
        if not len(bad):
            return rows
        self._keep_marked(rows.take(bad))
        return rows.take(pc.indices_nonzero(pc.invert(is_bad)))

    def _keep_marked(self, rows: Rows) -> None:
        assert rows.marks is not None
        marks = dict(zip(FIELDS, rows.marks.flatten(), strict=True))
        is_misfit = marks["column"].is_valid()
        is_line = pc.and_(pc.invert(is_misfit), marks["row"].is_null())
        lines = pc.if_else(is_line, marks["value"], pa.scalar(None, pa.string()))
        texts = pc.if_else(is_misfit, self._render_misfits(rows, marks), marks["row"])
        where = pc.binary_join_element_wise(marks["column"], marks["reason"], ": ")
        reasons = pc.coalesce(where, marks["reason"])
        self._add(ON_BAD_ROW, Violations(rows=rows.batch.num_rows))
        self._keep(ON_BAD_ROW, rows, self._make_columns(ON_BAD_ROW, rows, _make_lists(reasons), texts, lines))

    def _render_misfits(self, rows: Rows, marks: Mapping[str, pa.Array]) -> pa.Array:
        """Return the rows as JSON, with the source's own texts of the values that do not fit their columns."""
        texts = render_rows(rows.batch).to_pylist()
        misfits = (marks[name].to_pylist() for name in ("column", "value", "row"))
        return pa.array([_set_misfits(*parts) for parts in zip(texts, *misfits, strict=True)], pa.string())

    def refuse(self, row: Rows, error: ValueUnrepresentableError) -> None:
        """Keep a row that cannot be written, with all its columns and the error."""
        self._add(ON_BAD_ROW, Violations(rows=1))
        reasons = _make_lists(pa.array([error.message]))
        self._keep(ON_BAD_ROW, row, self._make_columns(ON_BAD_ROW, row, reasons, render_rows(row.batch)))

    def keep_failing(self, rows: Rows, failing: Sequence[Failing], typed: pa.RecordBatch, keys: Sequence[str]) -> None:
        """Keep the rows that fail a check, each under the first check that it fails. ``typed`` are the same rows as
        they would be written; the columns ``keys`` of these describe a failing row."""
        taken = pa.repeat(False, rows.batch.num_rows)
        for failed_check in failing:
            check = failed_check.rule.name
            before = self._violations.get(check, Violations(rows=0))
            self._violations[check] = add_rows(before, typed, failed_check.mask, keys, failed_check.rule.column)
            own_rows = pc.indices_nonzero(pc.and_(failed_check.mask, pc.invert(taken)))
            taken = pc.or_(taken, failed_check.mask)
            if len(own_rows):
                bad = rows.take(own_rows)
                self._keep(
                    check, bad, self._make_columns(check, bad, _list_reasons(failing, own_rows)), is_rendered=False
                )

    def _add(self, check: str, violations: Violations) -> None:
        self._violations[check] = self._violations.get(check, Violations(rows=0)) + violations

    def _keep(self, check: str, rows: Rows, columns: pa.RecordBatch, *, is_rendered: bool = True) -> None:
        self._cursor = choose_higher(self._cursor, self.read_cursor(rows.batch))
        self._rows += rows.batch.num_rows
        if (missing := MOST_BAD_ROWS_SHOWN - len(self._samples)) > 0:
            self._samples += _describe_rows(columns, rows.batch, is_rendered)[:missing]
        held = self._held.setdefault(check, _Held())
        if is_rendered:
            held.add(columns)
        else:
            held.add_unrendered(rows.batch, columns)
        if held.size >= _FILE_BYTES:
            self._write(check)

    def _make_columns(
        self, check: str, rows: Rows, reasons: pa.Array, texts: pa.Array | None = None, lines: pa.Array | None = None
    ) -> pa.RecordBatch:
        """Make the columns that the quarantine has of rows; those without ``texts`` are not rendered yet."""
        count = rows.batch.num_rows
        files, offsets = self._find_places(rows)
        start = self._plan.start.astimezone(UTC)
        nothing = pa.nulls(count, pa.string())
        columns = {
            "_lake_check": pa.repeat(check, count),
            "_lake_reasons": reasons,
            "_lake_source": files,
            "_lake_offset": offsets,
            "_lake_row": nothing if texts is None else texts,
            "_lake_line": nothing if lines is None else lines,
            "_lake_message": _render_messages(rows.batch),
            "_lake_job_id": pa.repeat(self._plan.job_id, count),
            "_lake_at": pa.repeat(pa.scalar(start, QUARANTINE_SCHEMA.field("_lake_at").type), count),
        }
        return pa.RecordBatch.from_pydict(columns, QUARANTINE_SCHEMA)

    def _find_places(self, rows: Rows) -> tuple[pa.Array, pa.Array]:
        """Return where rows begin: in the source's files if that is known, else in the partition."""
        numbers, partition = rows.row_numbers, f"partition {self._partition}"
        if rows.marks is None:
            return pa.repeat(partition, len(numbers)), numbers
        files, offsets = rows.marks.field("file"), rows.marks.field("offset")
        return pc.fill_null(files, partition), pc.if_else(files.is_null(), numbers, offsets)

    def _write(self, check: str) -> None:
        held, plan = self._held.pop(check), self._plan
        held.render()
        rows = sum(batch.num_rows for batch in held.batches)
        # A task that runs again gives its files the same numbers, as for the table's own files.
        seq = self._partition + len(self._uploads) * plan.partitions
        key = plan.names.make_key(check, seq)
        metadata, sent = {LOAD_METADATA: plan.load}, Counter(self._clients.requests)
        upload = StagedUpload(self._clients.s3, plan.access, key, metadata=metadata, limits=plan.limits)
        self._uploads.append(upload)
        self._encoder.write(QUARANTINE_SCHEMA, iter(held.batches), upload, rows)
        uploaded = upload.finish()
        self._keys.append(key)
        # Over all receipts of a task the cursor is that of all its rows: the next load does not read them again.
        facts = FileFacts(
            rows=rows,
            partition=self._partition,
            seq=seq,
            engine=self._encoder.name,
            row_groups=1,
            requests=dict(self._clients.requests - sent),
            cursor=self._cursor,
            violations=self._violations,
        )
        self.receipts.append(Receipt.of(uploaded, facts))
        self._violations = {}

    def close(self) -> SetAside | None:
        """Stage what is left, and return what was kept, which is not visible yet; None if nothing was kept."""
        for check in list(self._held):
            self._write(check)
        return SetAside(rows=self._rows, keys=tuple(self._keys), samples=tuple(self._samples)) if self._rows else None

    def abandon(self, cause: BaseException) -> None:
        """Withdraw what is staged, after the ``cause``."""
        # Rule bad-rows-aborted
        for upload in self._uploads:
            upload.abandon(cause)


def render_rows(batch: pa.RecordBatch) -> pa.Array:
    """Render each row as a JSON object of the source's columns, without those that are null; a message as it came."""
    if batch.schema.names == DOCUMENTS.names:
        return batch.column(DATA).cast(pa.string())
    names, rows = batch.schema.names, batch.num_rows
    try:
        return render_members(zip(names, batch.columns, strict=True), rows, WHOLE)
    except pa.ArrowInvalid:
        # Such as a time beyond the range of microseconds: only Arrow has a text for it.
        columns = map(_make_renderable, batch.columns)
        return render_members(zip(names, columns, strict=True), rows, WHOLE)


def _make_renderable(column: pa.Array) -> pa.Array:
    """Return a column, or Arrow's text of its values where JSON has none."""
    try:
        render_members([("", column)], len(column), WHOLE)
    except pa.ArrowInvalid:
        texts = (" ".join(column.slice(row, 1).to_string().split()) for row in range(len(column)))
        values = pa.array([text.removeprefix("[ ").removesuffix(" ]") for text in texts])
        return pc.if_else(column.is_valid(), values, pa.scalar(None, pa.string()))
    return column


def _render_messages(batch: pa.RecordBatch) -> pa.Array:
    """Render what the messages of records say besides the data: JSON with ``emitted_at`` and ``changes``."""
    if batch.schema.names != DOCUMENTS.names:
        return pa.nulls(batch.num_rows, pa.string())
    emitted, changes = (join([f'"{name}":', batch.column(name).cast(pa.string())]) for name in (EMITTED, CHANGES))
    comma = pc.if_else(pc.and_(emitted.is_valid(), changes.is_valid()), ",", "")
    is_record = batch.column(DATA).is_valid()
    whole = join(["{", emitted, comma, changes, "}"], null_as_empty=True)
    return pc.if_else(is_record, whole, pa.scalar(None, pa.string()))


def _set_rows(columns: pa.RecordBatch, texts: pa.Array) -> pa.RecordBatch:
    column_index = QUARANTINE_SCHEMA.get_field_index("_lake_row")
    return columns.set_column(column_index, QUARANTINE_SCHEMA.field(column_index), texts)


def _make_lists(texts: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.arange(0, len(texts) + 1).cast(pa.int32()), texts)


def _list_reasons(failing: Sequence[Failing], rows: pa.Array) -> pa.Array:
    """Return why the ``rows`` with these numbers fail: for each the reasons of all checks that it fails."""
    if len(failing) == 1:
        return _make_lists(pa.repeat(failing[0].rule.reason, len(rows)))
    # Most rows fail the same checks together: each such set of checks is listed once.
    digits = [pc.if_else(check.mask.take(rows), "1", "0") for check in failing]
    sets = pc.binary_join_element_wise(*digits, "").dictionary_encode()
    lists = [
        [check.rule.reason for check, digit in zip(failing, digit_set, strict=True) if digit == "1"]
        for digit_set in sets.dictionary.to_pylist()
    ]
    return pa.array(lists, pa.list_(pa.string())).take(sets.indices)


def _set_misfits(text: str, name: str | None, value: str | None, several: str | None) -> str:
    # The text leaves out columns without a value, so misfits are not in it yet. Numbers stay as they are written.
    if name is None:
        return text
    members = several or json.dumps({name: value}, ensure_ascii=False, separators=(",", ":"))
    return f"{text[:-1]}{'' if text == '{}' else ','}{members[1:]}"


def _describe_rows(columns: pa.RecordBatch, source: pa.RecordBatch, is_rendered: bool) -> list[str]:
    """Describe the first rows: where each is, and what is wrong with it."""
    first = columns.slice(0, MOST_BAD_ROWS_SHOWN)
    if not is_rendered:
        first = _set_rows(first, render_rows(source.slice(0, MOST_BAD_ROWS_SHOWN)))
    return [_describe_row(row) for row in first.to_pylist()]


def _describe_row(row: Mapping[str, Any]) -> str:
    value = row["_lake_line"] if row["_lake_line"] is not None else row["_lake_row"]
    shown = repr(value if len(value) <= _SHOWN else f"{value[:_SHOWN]}...")
    return f"{row['_lake_source']}, offset {row['_lake_offset']}: {'; '.join(row['_lake_reasons'])}: {shown}"
