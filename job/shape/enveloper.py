"""Batches of documents or rows become batches of the file, each in its envelope; pure: no Spark, no files."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from job.document import CHANGES, DATA, EMITTED, ROW
from job.json_text import objects
from job.receipt import Cursor
from job.shape.digest import hex_digests
from job.shape.documents import Documents
from job.shape.envelope import META, MILLIS, TEXT_MAP, EnvelopePlan
from job.shape.findings import Findings
from job.shape.fragments import fragments, not_finite
from job.shape.leaves import NO_FIT, NULLED, UNREADABLE
from job.shape.shaper import Shaper

MOST_SAMPLES: Final = 100
"""Changes that a file's receipt tells of, besides their number."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

Changes = dict[int, list[dict[str, str | None]]]


class EnvelopeShaper:
    """Shapes the batches of one task in order; ``first_index`` numbers its rows where they bring no number."""

    def __init__(self, plan: EnvelopePlan, *, job_id: str, start: datetime, first_index: int) -> None:
        self.plan = plan
        self.rows = 0
        self._first_index = first_index
        self._id_head = f"{job_id}/{plan.table_id}/"
        self._started = (start - _EPOCH) // timedelta(milliseconds=1)
        self._findings = Findings()
        self._rows = plan.rows and Shaper(plan.rows, job_id=job_id, start=start, first_index=first_index)

    def shape(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """``batch`` with exactly the plan's schema."""
        index = self._first_index + self.rows
        numbers = pa.arange(index, index + batch.num_rows) if self._rows else batch.column(ROW)
        data, changes = self._typed_rows(batch) if self._rows else self._documents(batch)
        self._note(changes, numbers)
        if not self._rows:
            _put_first(changes, batch.column(CHANGES))
        columns = [raw_ids(self._id_head, numbers), self._extracted(batch)]
        envelope = self.plan.envelope
        if envelope.meta:
            columns.append(self._meta(changes, batch.num_rows))
        if envelope.generation:
            columns.append(pa.repeat(pa.scalar(self.plan.generation_id, pa.int64()), batch.num_rows))
        self.rows += batch.num_rows
        return pa.RecordBatch.from_arrays([*columns, *data], schema=self.plan.schema)

    def take_cursor(self) -> tuple[Cursor | None, int]:
        """See ``Shaper``; documents have no cursor of ours."""
        return self._rows.take_cursor() if self._rows else (None, 0)

    def take_findings(self) -> Findings:
        """What was found since the last call."""
        taken, self._findings = self._findings, Findings()
        return taken

    def _typed_rows(self, batch: pa.RecordBatch) -> tuple[list[pa.Array], Changes]:
        shaped = self._rows.shape(batch) if self._rows else batch
        envelope, changes = self.plan.envelope, Changes()
        if envelope.typed:
            extra = [pa.nulls(batch.num_rows, TEXT_MAP)] if envelope.additional else []
            return [*shaped.columns, *extra], changes
        texts = []
        for name, column in zip(shaped.schema.names, shaped.columns, strict=True):
            texts.append(fragments(column))
            for place in not_finite(column):
                changes.setdefault(place, []).append({"field": name, "change": NULLED, "reason": NO_FIT})
        if envelope.data:
            texts = [objects(zip(shaped.schema.names, texts, strict=True), batch.num_rows)]
        return texts, changes

    def _documents(self, batch: pa.RecordBatch) -> tuple[list[pa.Array], Changes]:
        plan, data = self.plan, batch.column(DATA)
        if plan.envelope.data:
            return [data], Changes()
        found = Documents(data.cast(pa.binary()).to_pylist())
        if plan.record is None:
            columns = found.fragments(plan.properties or ())
        else:
            columns = found.columns(plan.record, plan.fields, additional=plan.envelope.additional is not None)
        self._findings.undeclared += found.undeclared
        changes: Changes = {
            row: [{"field": path, "change": change.change, "reason": change.reason} for path, change in entries]
            for row, entries in found.changes.items()
        }
        if plan.envelope.record_undeclared:
            for row, path in found.dropped:
                changes.setdefault(row, []).append({"field": path, "change": NULLED, "reason": UNREADABLE})
        return columns, changes

    def _extracted(self, batch: pa.RecordBatch) -> pa.Array:
        own = pa.scalar(self._started, pa.int64())
        found = pa.repeat(own, batch.num_rows) if self._rows else pc.fill_null(batch.column(EMITTED), own)
        return found.cast(MILLIS) if self.plan.envelope.typed else found

    def _meta(self, changes: Changes, rows: int) -> pa.Array:
        typed, sync_id = self.plan.envelope.typed, self.plan.sync_id

        def value(entries: list[dict[str, str | None]]) -> Any:
            whole = {"sync_id": sync_id, "changes": entries}
            return whole if typed else json.dumps(whole, separators=(",", ":"), ensure_ascii=False)

        kind = META if typed else pa.string()
        if not changes:
            return pa.repeat(pa.scalar(value([]), kind), rows)
        return pa.array([value(changes.get(row, [])) for row in range(rows)], kind)

    def _note(self, changes: Changes, numbers: pa.Array) -> None:
        self._findings.changes += sum(map(len, changes.values()))
        for row, entries in changes.items():
            for each in entries[: MOST_SAMPLES - len(self._findings.samples)]:
                place = f"row {numbers[row].as_py()}, {each['field']}"
                self._findings.samples.append(f"{place}: {each['change']} ({each['reason']})")


def raw_ids(head: str, numbers: pa.Array) -> pa.Array:
    """A version 8 UUID for each row of a load: the same row of the same load always gets the same."""
    texts = pc.binary_join_element_wise(head, numbers.cast(pa.string()), "")
    digests = hex_digests(texts)

    def cut(start: int, end: int) -> pa.Array:
        return pc.utf8_slice_codeunits(digests, start, end)

    pieces = [cut(0, 8), "-", cut(8, 12), "-8", cut(13, 16), "-8", cut(17, 20), "-", cut(20, 32)]
    return pc.binary_join_element_wise(*pieces, "")


def _put_first(changes: Changes, supplied: pa.Array) -> None:
    """What the source says it changed comes before what was changed here."""
    if supplied.null_count == len(supplied):
        return
    for row, text in enumerate(supplied.to_pylist()):
        entries = _decoded(text or "null", list[msgspec.Raw], [])
        if entries:
            changes[row] = [_supplied(each) for each in entries] + changes.get(row, [])


def _supplied(entry: msgspec.Raw) -> dict[str, str | None]:
    """One change in the source's words; what is no object has no field to name, and is a reason."""
    own = _decoded(entry, dict[str, msgspec.Raw], {"reason": entry})
    return {
        key: _decoded(own[key], str | None, bytes(own[key]).decode()) if key in own else None
        for key in ("field", "change", "reason")
    }


def _decoded(text: str | msgspec.Raw, kind: Any, otherwise: Any) -> Any:
    """JSON text as ``kind``, or what is given where it is something else."""
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.MsgspecError:
        return otherwise
