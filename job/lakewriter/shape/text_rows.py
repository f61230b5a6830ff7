"""Typed rows for text formats: shaped as for files with types, then every column as JSON text."""

from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from lakewriter.documents.types import JSON, KIND
from lakewriter.documents.values_to_text import COMPACT, find_non_finite, render_json
from lakewriter.errors import ValueUnrepresentableError
from lakewriter.receipt import Cursor, Findings
from lakewriter.shape.table import ColumnPlan, Shaped, ShapePlan, Shaper
from lakewriter.spec.table_spec import Partition


@dataclass(frozen=True)
class TextRowsPlan:
    """The plan of a file of text: ``rows`` shapes a batch, ``schema`` has each of its columns as JSON text."""

    rows: ShapePlan
    schema: pa.Schema
    notes: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[ColumnPlan, ...]:
        """Source columns and what becomes of them."""
        return self.rows.columns

    @property
    def partition(self) -> Partition:
        """None: only Iceberg tables have partitions, and their files are Parquet."""
        return ()

    @property
    def left_out(self) -> tuple[str, ...]:
        """Source columns that have no type."""
        return self.rows.left_out


def plan_text_rows(rows: ShapePlan) -> TextRowsPlan:
    """Plan rows of a text format."""
    fields = [pa.field(name, pa.string(), metadata={KIND: JSON}) for name in rows.schema.names]
    return TextRowsPlan(rows, pa.schema(fields), rows.notes)


class TextRowsShaper:
    """Shaper of the batches of one task in order; see ``Shaper``."""

    def __init__(self, plan: TextRowsPlan, *, job_id: str, start: datetime, first_index: int) -> None:
        self.plan = plan
        self._rows = Shaper(plan.rows, job_id=job_id, start=start, first_index=first_index)
        self._first_index = first_index

    def shape(self, batch: pa.RecordBatch) -> Shaped:
        """Return ``batch`` as text; ``VALUE_UNREPRESENTABLE`` for NaN and the infinities, which JSON lacks."""
        index = self._first_index + self._rows.rows
        typed = self._rows.shape(batch).typed
        texts = []
        for name, column in zip(typed.schema.names, typed.columns, strict=True):
            if odd := find_non_finite(column):
                raise ValueUnrepresentableError(
                    f"column {name!r}, row {index + odd[0]}: {column[odd[0]].as_py()} has no text in JSON.",
                    remedy=f"Clear it in the source, or declare text, for example columns: {{{name}: string}}; Parquet "
                    "and Avro files hold it as it is.",
                    column=name,
                )
            texts.append(render_json(column, COMPACT))
        return Shaped(pa.RecordBatch.from_arrays(texts, schema=self.plan.schema), typed)

    def take_cursor(self) -> tuple[Cursor | None, int]:
        """See ``Shaper``."""
        return self._rows.take_cursor()

    def read_cursor(self, batch: pa.RecordBatch) -> Cursor | None:
        """See ``AnyShaper``."""
        return self._rows.read_cursor(batch)

    def take_findings(self) -> Findings:
        """See ``Shaper``."""
        return self._rows.take_findings()
