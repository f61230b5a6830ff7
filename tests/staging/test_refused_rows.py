"""What a task keeps of rows that are bad: compressed JSON lines, objects of a bounded size, and their number."""

import gzip
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from lakewriter.errors import ValueUnrepresentableError
from lakewriter.source.bad_rows import BAD_FIELD
from lakewriter.spec.specification import Encoding
from lakewriter.staging import set_aside
from lakewriter.staging.set_aside import Aside, BadRowWriter, Rows, to_json_value
from tests.staging.plans import source_rows, source_table, task_plan, write_partition
from tests.support.server import StrictAws


class Kept:
    """A writer, and what it wrote."""

    def __init__(self, *keys: str) -> None:
        self.objects: dict[str, bytes] = {}
        self.writer = BadRowWriter(Aside("bad/", keys), 3, self.objects.__setitem__)

    @property
    def lines(self) -> list[Any]:
        found = (gzip.decompress(content).splitlines() for content in self.objects.values())
        return [json.loads(line) for lines in found for line in lines]


def batch(rows):
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("c", pa.string()), BAD_FIELD])
    return pa.RecordBatch.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)


GOOD = {"file": "a.csv", "offset": 5, "column": None, "value": None, "reason": None}
LINE = {"file": "a.csv", "offset": 7, "column": None, "value": "x,y", "reason": "r"}
CAST = {"file": None, "offset": None, "column": "c", "value": "é", "reason": "r"}


def test_marked_rows_are_kept_and_the_others_go_on():
    kept = Kept("id")
    good = kept.writer.take_marked(Rows.of(batch([(1, "a", GOOD), (None, None, LINE)]), 0))
    assert (good.batch.to_pylist(), good.places.to_pylist()) == ([{"id": 1, "c": "a"}], [0])
    good = kept.writer.take_marked(Rows.of(batch([(2, "b", None), (3, None, CAST), (4, "d", GOOD)]), 2))
    assert (good.batch.to_pylist(), good.places.to_pylist()) == ([{"id": 2, "c": "b"}, {"id": 4, "c": "d"}], [2, 4])
    # A value that is met later has the place of its row too.
    kept.writer.refuse(good.split()[1], ValueUnrepresentableError("no", column="c"))
    found = kept.writer.close()
    [key] = kept.objects
    assert key.startswith("bad/00003-00000-")
    assert key.endswith(".jsonl.gz")
    assert kept.lines == [
        {"file": "a.csv", "offset": 7, "value": "x,y", "reason": "r"},
        # The rows of the partition are counted from 0, bad ones included.
        {"offset": 3, "column": "c", "value": "é", "reason": "r", "partition": 3, "key": {"id": 3}},
        {"file": "a.csv", "offset": 5, "column": "c", "value": {"id": 4, "c": "d"}, "reason": "no", "key": {"id": 4}},
    ]
    assert found is not None
    assert (found.rows, found.keys) == (3, (key,))
    assert found.samples == (
        "a.csv, offset 7: r: 'x,y'",
        "partition 3, offset 3, column 'c': r: 'é'",
        """a.csv, offset 5, column 'c': no: '{"id": 4, "c": "d"}'""",
    )


@pytest.mark.parametrize("good", [batch([(1, "a", None)]), pa.RecordBatch.from_pydict({"id": [1], "c": ["a"]})])
def test_nothing_is_written_where_all_rows_are_good(good):
    kept = Kept()
    assert kept.writer.take_marked(Rows.of(good, 0)).batch.to_pylist() == [{"id": 1, "c": "a"}]
    assert kept.writer.close() is None
    assert not kept.objects


def test_many_bad_rows_are_several_objects(monkeypatch):
    monkeypatch.setattr(set_aside, "_OBJECT_BYTES", 100)
    kept = Kept()
    kept.writer.take_marked(Rows.of(batch([(None, None, LINE)] * 7), 0))
    found = kept.writer.close()
    assert found is not None
    assert (found.rows, len(found.keys), len(found.samples)) == (7, len(kept.objects), 5)
    assert len(kept.objects) > 2
    assert len(kept.lines) == 7


PLAIN = [
    (pa.array([b"\x00\xff"]), "AP8="),
    (pa.array([float("nan")]), "nan"),
    (pa.array([datetime(2024, 1, 2, tzinfo=UTC)]), "2024-01-02 00:00:00+00:00"),
    # Python's datetime has no such year.
    (pa.array([2**62], pa.timestamp("s")), "<value out of range: 4611686018427387904>"),
    (pa.array([{"a": [1, None]}]), {"a": [1, None]}),
    (pa.array(["\ud800".encode("utf-8", "surrogatepass").decode(errors="replace")]), "\ufffd\ufffd\ufffd"),
]


@pytest.mark.parametrize(("array", "expected"), PLAIN)
def test_value_as_json(array, expected):
    assert to_json_value(array) == expected


def with_bad_values(places: set[int]) -> Iterator[pa.RecordBatch]:
    """The rows of ``source_rows`` with values at ``places`` that no column of microseconds holds."""
    table = source_table(1000)
    times = [9_223_372_036_854_776 if place in places else place for place in range(1000)]
    yield from table.append_column("t", pa.array(times, pa.timestamp("ms"))).to_batches(max_chunksize=400)


BAD_PLACES = [{0}, {399, 400}, {999}, set(range(390, 410)), set(range(1000)), set()]


@pytest.mark.parametrize("places", BAD_PLACES, ids=lambda places: str(len(places)))
def test_values_that_do_not_fit_are_set_aside(aws: StrictAws, bucket: str, places: set[int]) -> None:
    schema = next(with_bad_values(set())).schema
    plan = task_plan(encoding=Encoding(), source=schema)
    kept = Kept("id")
    receipts = list(write_partition(plan, 0, with_bad_values(places), bad=kept.writer))
    found = kept.writer.close()
    assert sum(receipt.rows for receipt in receipts) == 1000 - len(places)
    assert (found.rows if found else 0) == len(places)
    assert sorted(line["offset"] for line in kept.lines) == sorted(places)
    for line in kept.lines:
        assert (line["partition"], line["column"], line["key"]) == (3, "t", {"id": line["value"]["id"]})
        assert line["reason"].startswith("column 't', row ")


def test_value_that_does_not_fit_fails_a_load_that_sets_nothing_aside(aws: StrictAws, bucket: str) -> None:
    plan = task_plan(encoding=Encoding(), source=next(with_bad_values(set())).schema)
    with pytest.raises(ValueUnrepresentableError, match="partition 0: column 't', row 401: value"):
        list(write_partition(plan, 0, with_bad_values({400})))
    assert not aws.uploads(bucket)


def test_rows_without_bad_ones_are_written_as_ever(aws: StrictAws, bucket: str) -> None:
    kept = Kept()
    [receipt] = write_partition(task_plan(), 0, source_rows(10), bad=kept.writer)
    assert (receipt.rows, kept.writer.close()) == (10, None)
