"""Receipts in parts: what is written, what is read of it, and parts that are not as they were written."""

import gzip
import hashlib
import json

import pytest

from lakewriter.errors import PendingUnrecoverableError
from lakewriter.receipt import ChangedValues, Cursor, Receipt, ReceiptPart, Totals
from lakewriter.receipts.parts import PartWriter, Receipts, Sum
from tests.receipts.files import Objects, make_receipt

LINE = len(make_receipt(0).model_dump_json()) + 1


def write_parts(objects: Objects, files: int, size: int) -> list[ReceiptPart]:
    writer = PartWriter("c/", size, objects.write)
    parts = [part for seq in range(files) for part in writer.add(make_receipt(seq))]
    return [*parts, *writer.flush()]


@pytest.mark.parametrize(
    ("files", "lines", "counts"), [(0, 2, []), (1, 2, [1]), (4, 2, [2, 2]), (5, 2, [2, 2, 1]), (5, 100, [5])]
)
def test_a_part_ends_with_the_receipt_that_fills_it(files, lines, counts):
    objects = Objects()
    parts = write_parts(objects, files, lines * LINE - 1)
    assert [part.totals.files for part in parts] == counts
    receipts = Receipts((), parts, objects.read)
    assert (len(receipts), bool(receipts)) == (files, files > 0)
    assert list(receipts) == [make_receipt(seq) for seq in range(files)]
    assert list(receipts.list_keys()) == [f"t/{seq}.parquet" for seq in range(files)]
    assert [receipt.columns for receipt in receipts.without_statistics()] == [{}] * files


def test_a_part_is_named_by_its_digest_and_the_same_receipts_give_the_same_part():
    objects = Objects()
    (part,) = write_parts(objects, 2, 10**6)
    body = objects.bodies[part.key]
    digest = hashlib.sha256(body).hexdigest()
    assert part == ReceiptPart(key=f"c/{digest[:32]}.jsonl.gz", sha256=digest, length=len(body), totals=part.totals)
    assert [json.loads(line)["key"] for line in gzip.decompress(body).splitlines()] == ["t/0.parquet", "t/1.parquet"]
    assert write_parts(objects, 2, 10**6) == [part]


def test_parts_are_read_one_at_a_time():
    objects = Objects()
    parts = write_parts(objects, 6, 2 * LINE - 1)
    each = iter(Receipts((make_receipt(9),), parts, objects.read))
    assert [next(each).seq for _ in range(3)] == [9, 0, 1]
    assert objects.reads == [parts[0].key]


def test_totals_are_those_of_all_files_and_read_no_part():
    lost = ChangedValues(field="a", change="NULLED", reason="DESTINATION", values=2)
    cut = ChangedValues(field="b", change="TRUNCATED", reason="DESTINATION", values=5)
    of_first = make_receipt(
        0, cursor=Cursor("int64", "9"), cursor_nulls=1, changes=2, change_samples=("x",), undeclared={"p": 1},
        changed=(lost,), size=16 * 1024 * 1024,
    )  # fmt: skip
    of_second = make_receipt(
        7, cursor=Cursor("int64", "10"), changes=7, change_samples=("y",), undeclared={"p": 2, "q": 1},
        changed=(cut, lost), engine="pyarrow", requests={"POST": 2}, task_attempt=0,
    )  # fmt: skip
    expected = Totals(
        files=2, rows=20, bytes=16 * 1024 * 1024 + 100, small_files=1, last_seq=7, engines=("arro3", "pyarrow"),
        cursor=Cursor("int64", "10"), cursor_nulls=1, changes=9, change_samples=("x", "y"), undeclared={"p": 3, "q": 1},
        changed=(cut, lost.model_copy(update={"values": 4})), requests={"POST": 3, "PUT": 1}, is_repeated=True,
    )  # fmt: skip
    assert Receipts((of_first, of_second)).totals == expected
    objects = Objects()
    writer = PartWriter("c/", 1, objects.write)
    parts = [part for receipt in (of_first, of_second) for part in writer.add(receipt)]
    assert Receipts((), parts, objects.read).totals == expected
    assert objects.reads == []
    # A part holds no changes by field: only the process that loads asks for them.
    assert [receipt.changed for receipt in Receipts((), parts, objects.read)] == [(), ()]


@pytest.mark.parametrize(("attempt", "posts", "is_repeated"), [(0, 1, False), (1, 1, True), (0, 2, True)])
def test_a_task_or_a_request_that_ran_again_may_have_left_an_upload(attempt, posts, is_repeated):
    total = Sum()
    total.add(make_receipt(0, task_attempt=attempt, requests={"POST": posts}))
    assert total.make().is_repeated is is_repeated


def cut(body: bytes) -> bytes:
    return body[:-1]


def shorten(body: bytes) -> bytes:
    return gzip.compress(gzip.decompress(body).partition(b"\n")[0])


SPOILED = [
    # what somebody has made of a part, what the error says of it
    (lambda _: None, "is not there"),
    (cut, "is not as the load wrote it: its SHA-256 differs"),
    (shorten, "is not as the load wrote it: its SHA-256 differs"),
    (lambda _: b"", "is not as the load wrote it: its SHA-256 differs"),
]


@pytest.mark.parametrize(("spoil", "why"), SPOILED)
def test_a_part_that_is_gone_or_changed(spoil, why):
    objects = Objects()
    parts = write_parts(objects, 4, 2 * LINE - 1)
    body = spoil(objects.bodies.pop(parts[1].key))
    if body is not None:
        objects.bodies[parts[1].key] = body
    receipts = Receipts((), parts, objects.read, "; or do without it")
    for use in (receipts.require_parts, lambda: list(receipts), lambda: list(receipts.list_keys())):
        with pytest.raises(PendingUnrecoverableError) as raised:
            use()
        assert raised.value.message == f"{parts[1].key}, which has the receipts of 2 files, {why}."
        assert raised.value.remedy == "Restore the object from its bucket's versions; or do without it."


def test_receipts_of_a_later_release_are_refused_where_they_need_something():
    objects = Objects()
    writer = PartWriter("c/", 1, objects.write)
    later = Receipt.model_validate(make_receipt(0).model_dump(mode="json"))
    (part,) = writer.add(later)
    body = gzip.compress(json.dumps(json.loads(later.model_dump_json()) | {"needs": ["two-writers"]}).encode())
    objects.bodies[part.key] = body
    changed = part.model_copy(update={"sha256": hashlib.sha256(body).hexdigest()})
    with pytest.raises(PendingUnrecoverableError, match="it needs 'two-writers', which this release does not know"):
        list(Receipts((), (changed,), objects.read))
