"""What tasks return: receipts while they are few, parts of many; uploads are aborted where a part is not written."""

import json
from dataclasses import replace

import pytest

from lakewriter.receipt import ReceiptPart, SetAside
from lakewriter.receipts.parts import Receipts
from lakewriter.spec.specification import Limits
from lakewriter.staging import task
from lakewriter.staging.returned import MOST_TASKS, Packer, Returned, Spill, dump_set_aside, plan_spill
from tests.receipts.files import Objects, make_receipt
from tests.staging.plans import source_rows, task_plan
from tests.support.server import StrictAws

MIB = 1024 * 1024
SHARES = [
    # partitions, how many bytes each of their tasks may return: 128 MiB together, no more than a part
    (1, 8 * MIB),
    (16, 8 * MIB),
    (1000, 134_217),
    (100_000, 1342),
    # As many as Spark's writer is planned for, which hardly all have rows.
    (1_000_000, 1342),
]
LENGTH = len(make_receipt(0).model_dump_json())


@pytest.mark.parametrize(("partitions", "share"), SHARES)
def test_every_task_has_its_share(partitions, share):
    assert plan_spill("c/", partitions) == Spill("c/", 8 * MIB, share)
    assert MOST_TASKS == 100_000


@pytest.mark.parametrize(
    ("files", "texts", "parts"),
    [(0, 0, []), (1, 1, []), (2, 2, []), (3, 0, [3]), (7, 0, [3, 3, 1])],
)
def test_a_task_returns_receipts_or_parts(files, texts, parts):
    objects = Objects()
    packer = Packer(Spill("c/", 3 * LENGTH, 2 * LENGTH), objects.write, attempt=2, stage=5)
    outputs = list(packer.pack(make_receipt(seq) for seq in range(files)))
    returned = Returned.parse(outputs)
    assert len(returned.texts) == texts
    assert [part.totals.files for part in returned.parts] == parts
    receipts = list(Receipts(returned.texts, returned.parts, objects.read))
    assert receipts == [make_receipt(seq, task_attempt=2) for seq in range(files)]
    assert returned.stages == ({5} if files else set())
    assert len(objects.bodies) == len(parts)


def test_what_is_set_aside_is_returned_beside_the_receipts():
    aside = SetAside(rows=2, keys=("k",), samples=("row 1",))
    (text,) = Packer(None, None).pack(iter([make_receipt(0)]))
    returned = Returned.parse([text, dump_set_aside(aside, []), dump_set_aside(aside, [])])
    assert returned.set_aside == SetAside(rows=4, keys=("k", "k"), samples=("row 1", "row 1"))
    assert (list(returned.texts), len(returned.parts)) == ([make_receipt(0)], 0)
    assert returned.stages == {None}


def test_a_task_without_rows_but_bad_ones_tells_that_it_ran_again():
    """Its earlier run may have left an upload of which no receipt tells."""
    aside = SetAside(rows=1, keys=("k",), samples=())
    returned = Returned.parse([dump_set_aside(aside, [make_receipt(0)], attempt=2, stage=5)])
    assert list(returned.quarantined) == [make_receipt(0, task_attempt=2)]
    assert returned.stages == {5}
    assert Receipts(tuple(returned.quarantined)).totals.is_repeated


@pytest.mark.parametrize("fails_at", [0, 1])
def test_a_task_that_cannot_write_a_part_aborts_its_uploads(aws: StrictAws, bucket: str, fails_at: int) -> None:
    rolls = Limits(part_bytes=5 * MIB, row_group_bytes=512 * 1024, target_file_bytes=1)
    written: list[str] = []

    def write(key: str, _: bytes) -> None:
        if len(written) == fails_at:
            raise ConnectionError("no")
        written.append(key)

    packer = Packer(Spill("c/", 1000, 0), write)
    with pytest.raises(ConnectionError):
        list(task.write_partition(replace(task_plan(limits=rolls)), 0, source_rows(20_000), packer.pack))
    assert (len(written), aws.uploads(bucket)) == (fails_at, [])


def test_a_part_is_small_beside_the_receipts_it_stands_for():
    objects = Objects()
    packer = Packer(Spill("c/", 8 * MIB, 0), objects.write)
    (text,) = packer.pack(make_receipt(seq) for seq in range(1000))
    part = ReceiptPart.model_validate(json.loads(text)["part"])
    assert len(text) < 1000
    assert part.length < 1000 * LENGTH / 10
