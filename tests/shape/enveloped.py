"""Documents in an envelope, shaped for a typed file or for text."""

import datetime as dt
import io
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from lakewriter.documents.schema import find_property_names, make_record_type
from lakewriter.documents.types import DOCUMENTS
from lakewriter.encode.formats import make_encoder
from lakewriter.shape.envelope import EnvelopePlan, EnvelopeShaper, plan_documents
from lakewriter.spec.encodings import FileEncoding
from lakewriter.spec.key_template import Template
from lakewriter.spec.layout import Layout
from lakewriter.spec.stream import Envelope
from lakewriter.spec.table_spec import Read, TableSpec

ENVELOPE = Envelope(raw_id="_id", extracted_at="_at", meta="_meta", generation="_generation")
TABLE = TableSpec(
    source_table="users",
    schema_name="public",
    name="users",
    read=Read(format="x"),
    layout=Layout("d", Template.parse("{seq}")),
    path="d",
)
START = dt.datetime(2024, 1, 15, tzinfo=dt.UTC)


def plan(schema: dict[str, Any], envelope: Envelope = ENVELOPE, *, one_text: bool = False) -> EnvelopePlan:
    """The plan for documents of a schema; with ``one_text`` as Avro has them."""
    record = make_record_type(schema, one_text=one_text, additional=envelope.additional, lifted=envelope.lifted)
    return plan_documents(DOCUMENTS, TABLE, envelope, record, find_property_names(schema))


def shaped(
    own: EnvelopePlan, *texts: str, changes: Sequence[str | None] | None = None
) -> tuple[pa.RecordBatch, EnvelopeShaper]:
    """A batch of JSON texts as the file has it; ``changes`` is what the source says it changed in each."""
    columns = [range(len(texts)), texts, [0] * len(texts), changes or [None] * len(texts)]
    batch = pa.RecordBatch.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, DOCUMENTS, strict=True)], schema=DOCUMENTS
    )
    shaper = EnvelopeShaper(own, job_id="j", start=START, first_index=0)
    return shaper.shape(batch).rows, shaper


def written(batch: pa.RecordBatch, encoding: FileEncoding) -> bytes:
    """A file of one batch."""
    sink = io.BytesIO()
    make_encoder(encoding).write(batch.schema, iter([batch]), sink, 1000)
    return sink.getvalue()
