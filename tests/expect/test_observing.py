"""What a task sees of the columns that expectations name: the same from every format, shaper and feed."""

import io
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakewriter.documents.schema import make_record_type
from lakewriter.documents.types import DOCUMENTS
from lakewriter.encode.formats import make_encoder
from lakewriter.errors import SpecInvalidError
from lakewriter.expect.observing import Observer, add_observed
from lakewriter.expect.watching import find_watched
from lakewriter.naming import name_columns
from lakewriter.receipt import Cursor, Observed, Violations
from lakewriter.shape.envelope import plan_documents, plan_rows
from lakewriter.shape.shapers import AnyPlan, make_shaper
from lakewriter.shape.table import plan_shape
from lakewriter.shape.text_rows import plan_text_rows
from lakewriter.spec.encodings import AvroEncoding, FileEncoding, ParquetEncoding, TextEncoding
from lakewriter.spec.expectations import AcceptedValues, Condition, Fresh, NullShare, Range
from tests.shape.enveloped import ENVELOPE
from tests.staging.plans import SPEC, START, TABLE

BARE = TABLE.model_copy(update={"cursor": None})
NOON = datetime(2027, 1, 1, 12, tzinfo=UTC)
COLUMNS: list[tuple[str, pa.DataType, list[Any], Observed]] = [
    # a column, its type, its values, what is seen of it
    ("small", pa.int8(), [3, None, -4],
     Observed(rows=3, nulls=1, lower=Cursor("int8", "-4"), upper=Cursor("int8", "3"))),
    ("big", pa.int64(), [2**62, 10, 9],
     Observed(rows=3, nulls=0, lower=Cursor("int64", "9"), upper=Cursor("int64", "4611686018427387904"))),
    ("price", pa.decimal128(10, 2), [Decimal("1.50"), None, Decimal("-2.25")],
     Observed(rows=3, nulls=1, lower=Cursor("decimal128(10, 2)", "-2.25"), upper=Cursor("decimal128(10, 2)", "1.50"))),
    ("ratio", pa.float64(), [float("nan"), 0.25, None],
     Observed(rows=3, nulls=1, nans=1, lower=Cursor("double", "0.25"), upper=Cursor("double", "0.25"))),
    ("half", pa.float32(), [0.1, 2.5, -1],
     Observed(rows=3, nulls=0, lower=Cursor("float", "-1.0"), upper=Cursor("float", "2.5"))),
    ("name", pa.string(), ["b", "a" * 200, "b" * 200],
     Observed(rows=3, nulls=0, lower=Cursor("string", "a" * 200), upper=Cursor("string", "b" * 200))),
    ("day", pa.date32(), [date(2027, 1, 2), date(2026, 12, 31), None],
     Observed(rows=3, nulls=1, lower=Cursor("date32[day]", "2026-12-31"), upper=Cursor("date32[day]", "2027-01-02"))),
    ("at", pa.timestamp("us", "UTC"), [NOON, None, NOON],
     Observed(rows=3, nulls=1, lower=Cursor("timestamp[us, tz=UTC]", "2027-01-01T12:00:00.000000Z"),
              upper=Cursor("timestamp[us, tz=UTC]", "2027-01-01T12:00:00.000000Z"))),
    ("local", pa.timestamp("us"), [NOON.replace(tzinfo=None), None, None],
     Observed(rows=3, nulls=2, lower=Cursor("timestamp[us]", "2027-01-01T12:00:00.000000"),
              upper=Cursor("timestamp[us]", "2027-01-01T12:00:00.000000"))),
    ("empty", pa.int32(), [None, None, None], Observed(rows=3, nulls=3)),
]  # fmt: skip
SCHEMA = pa.schema([(name, t) for name, t, _, _ in COLUMNS])
BATCH = pa.RecordBatch.from_arrays([pa.array(v, t) for _, t, v, _ in COLUMNS], schema=SCHEMA)
SEEN = {name: observed for name, _, _, observed in COLUMNS}
PARQUET = ParquetEncoding()
FORMATS: list[FileEncoding] = [
    PARQUET, ParquetEncoding(codec="zstd"), AvroEncoding(), TextEncoding(kind="csv"), TextEncoding(kind="jsonl"),
]  # fmt: skip


def expect(**kinds: Any) -> Any:
    rules = [Range(name=f"r.{name}", column=name, at_least=limit) for name, limit in kinds.items()]
    return BARE.model_copy(update={"expect": tuple(rules)})


LIMITS = {"small": 0, "big": 0, "price": 0, "ratio": 0, "half": 0, "name": "a", "day": "2027-01-01",
          "at": "2027-01-01", "local": "2027-01-01", "empty": 0}  # fmt: skip


def observe(plan: AnyPlan, table: Any, batch: pa.RecordBatch, encoding: FileEncoding) -> dict[str, Observed]:
    """What is seen of a batch that is written in one file; a text format may refuse NaN, which is left out then."""
    watches = find_watched(table, plan, is_parquet=isinstance(encoding, ParquetEncoding))
    observer, shaper = Observer(watches), make_shaper(plan, job_id="j", start=START, first_index=1)
    shaped, typed = shaper.shape(batch)
    observer.observe(typed)
    sink = io.BytesIO()
    make_encoder(encoding).write(plan.schema, iter([shaped]), sink, 1000)
    footer = pq.read_metadata(io.BytesIO(sink.getvalue())) if isinstance(encoding, ParquetEncoding) else None
    return observer.take(batch.num_rows, footer)[0]


def without_nan(batch: pa.RecordBatch) -> pa.RecordBatch:
    place = batch.schema.names.index("ratio")
    return batch.set_column(place, SCHEMA.field(place), pa.array([None, 0.25, None], pa.float64()))


@pytest.mark.parametrize("encoding", FORMATS, ids=str)
def test_rows_are_seen_alike_in_every_format(encoding):
    rows = plan_shape(SCHEMA, SPEC, BARE)
    if isinstance(encoding, TextEncoding):
        seen = observe(plan_text_rows(rows), expect(**LIMITS), without_nan(BATCH), encoding)
        ratio = Observed(rows=3, nulls=2, lower=Cursor("double", "0.25"), upper=Cursor("double", "0.25"))
        assert seen == SEEN | {"ratio": ratio}
    else:
        assert observe(rows, expect(**LIMITS), BATCH, encoding) == SEEN


@pytest.mark.parametrize("encoding", [PARQUET, AvroEncoding(), TextEncoding(kind="csv")], ids=str)
def test_rows_in_an_envelope_are_seen_alike(encoding):
    envelope = ENVELOPE.model_copy(update={"typed": not isinstance(encoding, TextEncoding)})
    spec = SPEC.model_copy(update={"tracking": ()})
    assert observe(plan_rows(SCHEMA, spec, BARE, envelope), expect(**LIMITS), BATCH, encoding) == SEEN


PROPERTIES = {
    "properties": {
        "n": {"type": ["null", "integer"]},
        "at": {"type": "string", "format": "date-time", "airbyte_type": "timestamp_with_timezone"},
        "word": {"type": "string"},
    }
}
TEXTS = ['{"n": 10, "at": "2027-01-01T12:00:00Z", "word": "b"}', '{"n": null, "word": "null"}', '{"n": 9}']
OF_DOCUMENTS = {
    "n": Observed(rows=3, nulls=1, lower=Cursor("int64", "9"), upper=Cursor("int64", "10")),
    "at": SEEN["at"].model_copy(update={"nulls": 2}),
    "word": Observed(rows=3, nulls=1, lower=Cursor("string", "b"), upper=Cursor("string", "null")),
}
ENVELOPES = [
    (PARQUET, {}),
    (AvroEncoding(), {}),
    (TextEncoding(kind="jsonl"), {"typed": False}),
    (TextEncoding(kind="csv"), {"typed": False, "data": "_data"}),
]


@pytest.mark.parametrize(("encoding", "update"), ENVELOPES, ids=str)
def test_documents_are_seen_alike_in_every_format(encoding, update):
    envelope = ENVELOPE.model_copy(update=update)
    record = make_record_type(PROPERTIES)
    plan = plan_documents(DOCUMENTS, BARE, envelope, record, ("n", "at", "word"))
    if not envelope.typed:
        plan = replace(plan, watched=record)
    columns = [range(3), TEXTS, [0] * 3, [None] * 3]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, DOCUMENTS, strict=True)]
    batch = pa.RecordBatch.from_arrays(arrays, schema=DOCUMENTS)
    assert observe(plan, expect(n=0, at="2027-01-01", word="a"), batch, encoding) == OF_DOCUMENTS


def test_footers_tell_of_what_they_tell_exactly():
    watches = find_watched(expect(**LIMITS), plan_shape(SCHEMA, SPEC, BARE), is_parquet=True)
    assert {name for name, watch in watches.columns.items() if not watch.in_footer} == {"ratio", "half", "name"}
    assert not any(
        watch.in_footer
        for watch in find_watched(expect(**LIMITS), plan_shape(SCHEMA, SPEC, BARE), is_parquet=False).columns.values()
    )


def test_footer_that_is_not_kept_tells_nothing():
    watches = find_watched(expect(big=0), plan_shape(SCHEMA, SPEC, BARE), is_parquet=True)
    assert Observer(watches).take(7, None)[0] == {"big": Observed(rows=7)}


def of(rows: int, nulls: int | None, low: int | None = None, high: int | None = None) -> Observed:
    lower, upper = (None if bound is None else Cursor("int64", str(bound)) for bound in (low, high))
    return Observed(rows=rows, nulls=nulls, lower=lower, upper=upper)


SUMS = [
    (of(2, 0, 1, 5), of(3, 1, -9, 2), of(5, 1, -9, 5)),
    # rows that are all null say nothing of bounds
    (of(2, 2), of(3, 1, 7, 10), of(5, 3, 7, 10)),
    (of(2, 2), of(0, 0), of(2, 2)),
    # what one file does not tell, both do not tell
    (of(2, None), of(3, 0, 7, 10), of(5, None)),
    (of(2, 1), of(3, 0, 7, 10), of(5, 1)),
]


@pytest.mark.parametrize(("one", "other", "both"), SUMS)
def test_files_together(one, other, both):
    assert add_observed(one, other) == add_observed(other, one) == both


NESTED = pa.schema([("id", pa.int64()), ("tags", pa.list_(pa.string())), ("open", pa.bool_())])
REFUSED = [
    (
        NullShare(name="x", column="nane", at_most=0),
        r"expectation 'x' of 'crm\.accounts': the source has no column 'nane'",
    ),
    (Range(name="x", column="tags", at_least=0), "column 'tags' has type 'list<element: string>', expected a number"),
    (Range(name="x", column="open", at_least=0), "column 'open' has type 'bool', expected a number"),
    (Fresh(name="x", column="id", within="1 second"), "column 'id' has type 'int64', expected a date or a"),
    (
        Range(name="x", column="id", at_least="2027-01-01"),
        "the limit '2027-01-01' does not compare with a column",
    ),
]


@pytest.mark.parametrize(("rule", "message"), REFUSED)
def test_expectation_that_has_no_answer_is_refused(rule, message):
    table = BARE.model_copy(update={"expect": (rule,)})
    with pytest.raises(SpecInvalidError, match=message):
        find_watched(table, plan_shape(NESTED, SPEC, BARE), is_parquet=True)


def test_nulls_of_nested_columns_are_counted():
    rule = NullShare(name="x", column="tags", at_most=0)
    table = BARE.model_copy(update={"expect": (rule,)})
    batch = pa.RecordBatch.from_pylist([{"id": 1, "tags": []}, {"id": 2, "tags": None}], schema=NESTED)
    assert observe(plan_shape(NESTED, SPEC, BARE), table, batch, PARQUET) == {"tags": Observed(rows=2, nulls=1)}


def test_columns_are_found_by_the_names_of_the_source():
    source = pa.schema([("Flight ID", pa.int64())])
    rule = NullShare(name="x", column="flight id", at_most=0)
    table = BARE.model_copy(update={"expect": (rule,)})
    plan = plan_shape(source, SPEC, BARE, rename=name_columns)
    [watch] = find_watched(table, plan, is_parquet=True).columns.values()
    assert watch.name == plan.columns[0].name != "Flight ID"


VALUES: list[tuple[pa.DataType, list[Any], list[Any], int, tuple[str, ...]]] = [
    # a type, the accepted values, those of the rows, how many are none of them, and which
    (pa.string(), ["a", 5], ["a", "5", None], 0, ()),
    (pa.string(), ["a"], ["a", "b", "b", "c"], 3, ("'b'", "'c'")),
    (pa.int64(), [1, 2.0], [1, 2, 3], 1, ("'3'",)),
    (pa.decimal128(10, 2), [1, 0.5], [Decimal("1.00"), Decimal("0.50"), Decimal("0.51")], 1, ("'0.51'",)),
    (pa.float64(), [0.1, 1], [0.1, 1.0, float("nan")], 1, ("'nan'",)),
    (pa.bool_(), [True], [True, False], 1, ("'false'",)),
    (pa.date32(), ["2027-01-01"], [date(2027, 1, 1), date(2027, 1, 2)], 1, ("'2027-01-02'",)),
    (pa.timestamp("us", "UTC"), ["2027-01-01T13:00:00+01:00"], [NOON], 0, ()),
    (pa.string(), ["a"], list("bcdefgh"), 7, ("'b'", "'c'", "'d'", "'e'", "'f'")),
]


@pytest.mark.parametrize(("t", "accepted", "values", "rows", "samples"), VALUES)
def test_accepted_values(t, accepted, values, rows, samples):
    schema = pa.schema([("c", t)])
    table = BARE.model_copy(update={"expect": (AcceptedValues(name="x", column="c", values=tuple(accepted)),)})
    watched = find_watched(table, plan_shape(schema, SPEC, BARE), is_parquet=True)
    observer = Observer(watched)
    observer.observe(pa.RecordBatch.from_arrays([pa.array(values, t)], schema=schema))
    assert observer.take(3, None) == ({}, {"x": Violations(rows=rows, samples=samples)})
    # The next file is counted anew.
    assert observer.take(0, None) == ({}, {"x": Violations(rows=0)})


NO_VALUES: list[tuple[pa.DataType, Any]] = [
    (pa.int64(), "a"), (pa.int64(), 1.5), (pa.bool_(), 1), (pa.int64(), True), (pa.date32(), "x"), (pa.int8(), 300),
]  # fmt: skip


@pytest.mark.parametrize(("t", "value"), NO_VALUES)
def test_value_that_a_column_cannot_have_is_refused(t, value):
    table = BARE.model_copy(update={"expect": (AcceptedValues(name="x", column="c", values=(value,)),)})
    with pytest.raises(SpecInvalidError, match="expected a value of a column of type"):
        find_watched(table, plan_shape(pa.schema([("c", t)]), SPEC, BARE), is_parquet=True)


@pytest.mark.parametrize(("keys", "sample"), [(("id",), "(id=2)"), ((), "(id=2, v=b)")])
def test_rows_of_which_a_condition_is_false(keys, sample):
    rules = (Condition(name="x", sql="s"), Condition(name="y", sql="t"))
    table = BARE.model_copy(update={"expect": rules, "primary_key": keys})
    schema, spec = pa.schema([("id", pa.int64()), ("v", pa.string())]), SPEC.model_copy(update={"tracking": ()})
    observer = Observer(find_watched(table, plan_shape(schema, spec, BARE), is_parquet=True))
    batch = pa.RecordBatch.from_pylist([{"id": 1, "v": "a"}, {"id": 2, "v": "b"}], schema=schema)
    observer.observe(batch, pa.array([{"c0": True, "c1": True}, {"c0": False, "c1": True}]))
    assert observer.take(2, None)[1] == {"x": Violations(rows=1, samples=(sample,)), "y": Violations(rows=0)}
