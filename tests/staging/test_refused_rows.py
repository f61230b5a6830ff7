"""What a task keeps of rows that are bad: the rows of the quarantine's files, and their number."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from lakewriter.aws import get_shared_clients
from lakewriter.errors import ValueUnrepresentableError
from lakewriter.source.bad_rows import BAD_FIELD, FIELDS
from lakewriter.spec.encodings import ParquetEncoding
from lakewriter.spec.quarantine_names import QuarantineNames
from lakewriter.spec.specification import Limits
from lakewriter.staging import quarantine
from lakewriter.staging.quarantine import QuarantinePlan, QuarantineWriter
from lakewriter.staging.source_rows import Rows
from tests.staging.plans import ACCESS, START, source_rows, source_table, task_plan, write_partition
from tests.support.server import StrictAws


class Kept(QuarantineWriter):
    """A writer whose files are lists of rows."""

    def __init__(self) -> None:
        plan = QuarantinePlan(QuarantineNames("q", "a1", "t"), ACCESS, Limits(), "crm/j1/a1", "j1", START, 1)
        super().__init__(plan, 3, get_shared_clients(ACCESS))
        self.files: list[list[dict[str, Any]]] = []

    def _write(self, check: str) -> None:
        held = self._held.pop(check)
        held.render()
        self.files.append([row for batch in held.batches for row in batch.to_pylist()])

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [row for file in self.files for row in file]


def batch(rows):
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("c", pa.string()), BAD_FIELD])
    return pa.RecordBatch.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)


NOTHING: dict[str, Any] = dict.fromkeys(FIELDS)
GOOD = NOTHING | {"file": "a.csv", "offset": 5}
LINE = NOTHING | {"file": "a.csv", "offset": 7, "value": "x,y", "reason": "r"}
CAST = NOTHING | {"column": "c", "value": "é", "reason": "r"}


def test_marked_rows_are_kept_and_the_others_go_on(aws: StrictAws) -> None:
    kept = Kept()
    good = kept.take_marked(Rows.of(batch([(1, "a", GOOD), (None, None, LINE)]), 0))
    assert (good.batch.to_pylist(), good.row_numbers.to_pylist()) == ([{"id": 1, "c": "a"}], [0])
    good = kept.take_marked(Rows.of(batch([(2, "b", None), (3, None, CAST), (4, "d", GOOD)]), 2))
    assert (good.batch.to_pylist(), good.row_numbers.to_pylist()) == (
        [{"id": 2, "c": "b"}, {"id": 4, "c": "d"}],
        [2, 4],
    )
    # A value that is met later has the place of its row too.
    kept.refuse(good.split()[1], ValueUnrepresentableError("no", column="c"))
    found = kept.close()
    columns = ("_lake_source", "_lake_offset", "_lake_row", "_lake_line", "_lake_reasons")
    assert [tuple(line[name] for name in columns) for line in kept.lines] == [
        ("a.csv", 7, None, "x,y", ["r"]),
        # The rows of the partition are counted from 0, bad ones included.
        ("partition 3", 3, '{"id":3,"c":"é"}', None, ["c: r"]),
        ("a.csv", 5, '{"id":4,"c":"d"}', None, ["no"]),
    ]
    assert found is not None
    assert found.rows == 3
    assert found.samples == (
        "a.csv, offset 7: r: 'x,y'",
        """partition 3, offset 3: c: r: '{"id":3,"c":"é"}'""",
        """a.csv, offset 5: no: '{"id":4,"c":"d"}'""",
    )


@pytest.mark.parametrize("good", [batch([(1, "a", None)]), pa.RecordBatch.from_pydict({"id": [1], "c": ["a"]})])
def test_nothing_is_written_where_all_rows_are_good(aws: StrictAws, good: pa.RecordBatch) -> None:
    kept = Kept()
    assert kept.take_marked(Rows.of(good, 0)).batch.to_pylist() == [{"id": 1, "c": "a"}]
    assert kept.close() is None
    assert not kept.files


def test_many_bad_rows_are_several_files(aws: StrictAws, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quarantine, "_FILE_BYTES", 100)
    kept = Kept()
    for number in range(3):
        kept.take_marked(Rows.of(batch([(None, None, LINE)] * 3), 3 * number))
    found = kept.close()
    assert found is not None
    assert (found.rows, len(found.samples), [len(file) for file in kept.files]) == (9, 5, [3, 3, 3])


def with_bad_values(places: set[int]) -> Iterator[pa.RecordBatch]:
    """The rows of ``source_rows`` with values at ``places`` that no column of microseconds holds."""
    table = source_table(1000)
    times = [9_223_372_036_854_776 if place in places else place for place in range(1000)]
    yield from table.append_column("t", pa.array(times, pa.timestamp("ms"))).to_batches(max_chunksize=400)


BAD_PLACES = [{0}, {399, 400}, {999}, set(range(390, 410)), set(range(1000)), set()]


@pytest.mark.parametrize("places", BAD_PLACES, ids=lambda places: str(len(places)))
def test_values_that_do_not_fit_are_kept(aws: StrictAws, bucket: str, places: set[int]) -> None:
    schema = next(with_bad_values(set())).schema
    plan = task_plan(encoding=ParquetEncoding(), source=schema)
    kept = Kept()
    receipts = list(write_partition(plan, 0, with_bad_values(places), bad=kept))
    found = kept.close()
    assert sum(receipt.rows for receipt in receipts) == 1000 - len(places)
    assert (found.rows if found else 0) == len(places)
    assert sorted(line["_lake_offset"] for line in kept.lines) == sorted(places)
    for line in kept.lines:
        assert line["_lake_source"] == "partition 3"
        assert line["_lake_reasons"][0].startswith("column 't', row ")
        # Arrow's own text: JSON has none for a time so far away.
        assert '"t":"<value out of range: 9223372036854776>"' in line["_lake_row"]


def test_value_that_does_not_fit_fails_a_load_without_a_quarantine(aws: StrictAws, bucket: str) -> None:
    plan = task_plan(encoding=ParquetEncoding(), source=next(with_bad_values(set())).schema)
    with pytest.raises(ValueUnrepresentableError, match="partition 0: column 't', row 401: value"):
        list(write_partition(plan, 0, with_bad_values({400})))
    assert not aws.uploads(bucket)


def test_rows_without_bad_ones_are_written_as_ever(aws: StrictAws, bucket: str) -> None:
    kept = Kept()
    [receipt] = write_partition(task_plan(), 0, source_rows(10), bad=kept)
    assert (receipt.rows, kept.close()) == (10, None)
