"""Rows that checks keep out, as the files of the quarantine have them, however many are rendered at once."""

import io
import json
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakewriter.expect.failing_rows import Failing, RowRule
from lakewriter.receipt import SetAside, Violations
from lakewriter.spec.quarantine_names import QuarantineNames
from lakewriter.spec.specification import Limits
from lakewriter.staging import quarantine
from lakewriter.staging.quarantine import QuarantinePlan, QuarantineWriter
from lakewriter.staging.source_rows import Rows, keep_rows
from tests.staging.plans import ACCESS, START

WIDE = pa.schema([("id", pa.int64()), ("name", pa.string()), ("kind", pa.dictionary(pa.int8(), pa.string()))])
NARROW = pa.schema([pa.field("id", pa.int64(), nullable=False), *list(WIDE)[1:]])
"""Readers give columns now as nullable and now not."""
BATCHES: list[tuple[pa.Schema, list[tuple[Any, ...]]]] = [
    (WIDE, [(1, "a", "x"), (2, None, "y"), (3, 'say "c"', "x"), (4, "d", None)]),
    (WIDE, [(5, None, "z"), (6, "f", "z")]),
    (NARROW, [(7, "g\n", "x"), (8, "h", "x")]),
    (WIDE, [(9, None, None)]),
]
NAMED = RowRule("named", "has a name", "name", "null_share")
ODD = RowRule("odd", "is odd", "id", "test")


class Kept:
    """A writer of partition 3, and what it uploaded."""

    def __init__(self) -> None:
        self.bodies: dict[str, bytes] = {}
        self.aborted: list[str] = []
        s3 = SimpleNamespace(
            create_multipart_upload=lambda **_: {"UploadId": "u"},
            upload_part=self._put,
            abort_multipart_upload=lambda *, Key, **_: self.aborted.append(Key),  # noqa: N803 - S3's own name
        )
        names = QuarantineNames("lake/flights__quarantine", "a1", "flights")
        plan = QuarantinePlan(names, ACCESS, Limits(), "load", "j1", START, 4)
        self.writer = QuarantineWriter(plan, 3, SimpleNamespace(s3=s3, requests=Counter()))  # type: ignore[arg-type]

    def _put(self, *, Key: str, Body: bytes, **_: Any) -> dict[str, str]:  # noqa: N803 - S3's own names
        self.bodies[Key] = self.bodies.get(Key, b"") + Body
        return {"ETag": "e"}

    def keep_all(self) -> SetAside | None:
        first = 0
        for schema, rows in BATCHES:
            arrays = [pa.array(values, t) for values, t in zip(zip(*rows, strict=True), schema.types, strict=True)]
            batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
            odd = pa.array([row[0] % 2 == 1 for row in rows])
            masks = [Failing(NAMED, batch.column("name").is_null()), Failing(ODD, odd)]
            failing = [each for each in masks if any(each.mask.to_pylist())]
            self.writer.keep_failing(Rows.of(batch, first), failing, batch, ["id"])
            first += batch.num_rows
        return self.writer.close()

    def read(self) -> dict[str, list[tuple[int, list[str], str]]]:
        read = [pq.read_table(io.BytesIO(body)).to_pylist() for body in self.bodies.values()]
        return {
            rows[0]["_lake_check"]: [(row["_lake_offset"], row["_lake_reasons"], row["_lake_row"]) for row in rows]
            for rows in read
        }


@pytest.mark.parametrize("size", [1, 60, 1_000_000])
def test_rows_are_the_same_however_many_are_rendered_at_once(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quarantine, "_RENDERED_BYTES", size)
    kept = Kept()
    aside = kept.keep_all()
    # A row goes to the first check that it fails, with the reasons of all.
    assert {check: [row[:2] for row in rows] for check, rows in kept.read().items()} == {
        "named": [(1, ["has a name"]), (4, ["has a name", "is odd"]), (8, ["has a name", "is odd"])],
        "odd": [(0, ["is odd"]), (2, ["is odd"]), (6, ["is odd"])],
    }
    texts = {row[0]: row[2] for rows in kept.read().values() for row in rows}
    if size == 1:
        # Each batch by itself: a column comes last where one of its rows has no value.
        assert texts[8] == '{"id":9}'
        assert texts[6] == '{"id":7,"name":"g\\n","kind":"x"}'
    parsed = {place: json.loads(text) for place, text in texts.items()}
    assert parsed == {
        0: {"id": 1, "name": "a", "kind": "x"},
        1: {"id": 2, "kind": "y"},
        2: {"id": 3, "name": 'say "c"', "kind": "x"},
        4: {"id": 5, "kind": "z"},
        6: {"id": 7, "name": "g\n", "kind": "x"},
        8: {"id": 9},
    }
    assert aside is not None
    # The first five in the order in which they were kept: of a batch those of its first check come first.
    assert (aside.rows, [sample.split(":")[0] for sample in aside.samples]) == (
        6, [f"partition 3, offset {place}" for place in (1, 0, 2, 4, 6)],
    )  # fmt: skip


STAYING = [
    pa.array([1, 2, 3, 4]),
    pa.array([1, None, 3, None]),
    pa.array([True, False, False, True]),
    pa.array([1.5, 2.5, 3, 4], pa.float32()),
    pa.array([START, START, None, START], pa.timestamp("us", "UTC")),
    pa.array(["a", "b", None, "d"]),
    pa.array(["a", "b", "c", "d"]).dictionary_encode(),
    pa.array([[1], None, [], [4, 5]]),
    pa.array([{"a": 1}, None, {"a": None}, {"a": 4}]),
    pa.nulls(4),
]


@pytest.mark.parametrize("staying", [[True, False, False, True], [False] * 4, [True] * 4])
def test_rows_that_stay_are_those_of_a_filter(staying: list[bool]) -> None:
    batch = pa.RecordBatch.from_arrays(STAYING, names=[str(array.type) + str(n) for n, array in enumerate(STAYING)])
    kept = keep_rows(batch, pa.array(staying))
    assert kept.equals(batch.filter(pa.array(staying)), check_metadata=True)
    assert [column.to_pylist() for column in kept.columns[:2]] == [
        [value for value, stays in zip(array.to_pylist(), staying, strict=True) if stays] for array in STAYING[:2]
    ]


def test_receipts_count_all_rows_that_fail_a_check():
    kept = Kept()
    kept.keep_all()
    found = [receipt.violations for receipt in kept.writer.receipts if receipt.violations]
    assert found == [
        {
            "named": Violations(rows=3, samples=("(id=2)", "(id=5)", "(id=9)")),
            "odd": Violations(rows=5, samples=("(id=1)", "(id=3)", "(id=5)", "(id=7)", "(id=9)")),
        }
    ]


def test_rows_of_a_task_that_fails_are_not_staged_any_more():
    kept = Kept()
    kept.keep_all()
    kept.writer.abandon(ZeroDivisionError("a fault"))
    assert sorted(kept.aborted) == sorted(kept.bodies)
    assert len(kept.aborted) == 2
