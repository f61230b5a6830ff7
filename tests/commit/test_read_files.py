"""The record of files that loads have read: compared with a listing, joined, and followed through each change."""

import random

import pytest

from lakewriter.commit.control import Control
from lakewriter.commit.read_files import compare_files, join_parts, write_files
from lakewriter.naming import ControlKeys
from lakewriter.receipt import RepeatedFiles
from lakewriter.records.input_records import (
    InputPart,
    Inputs,
    InputsIntent,
    JoinedParts,
    follow_load,
    follow_other,
    follow_undo,
)
from lakewriter.spec.listed_files import ListedFile
from tests.commit.memory import Memory, World

A, B, C = (InputPart(key=name, sha256="", length=0, files=1) for name in "abc")
SECOND = 1_000_000_000

SAME = [
    # two listings of a file (size, ETag, time), whether their contents are the same, and whether it was not written
    ((1, "x", 5 * SECOND), (1, "x", 5 * SECOND), True, True),
    ((1, "x", 5 * SECOND), (1, "x", 9 * SECOND), True, False),
    ((1, "x", 5 * SECOND), (1, "y", 5 * SECOND), False, False),
    ((1, "x", 5 * SECOND), (2, "x", 5 * SECOND), False, False),
    ((1, "", 5), (1, "", 5), True, True),
    ((1, "", 5), (1, "", 6), False, False),
    # Spark lists in milliseconds, and without ETags.
    ((1, "x", 5 * SECOND), (1, "", 5 * SECOND), True, True),
    ((1, "", 5_000_001), (1, "", 5_000_000), True, True),
    ((1, "", 6_000_000), (1, "", 5_000_000), False, False),
]


@pytest.mark.parametrize(("one", "other", "same", "untouched"), SAME)
def test_contents_of_two_listings(one, other, same, untouched):
    first, second = ListedFile("f", *one), ListedFile("f", *other)
    assert (first.has_contents_of(second), first.is_untouched_since(second)) == (same, untouched)


def file(name: str, etag: str = "e") -> ListedFile:
    return ListedFile(f"s3://b/{name}", 1, etag, SECOND)


def make_control() -> Control:
    return Control(Memory(World(), lambda: None, random.Random(0), 0), ControlKeys("", "p"), "t")


def test_what_is_known_of_a_listing():
    control = make_control()
    parts = write_files(control, "A1", "a", [file("1"), file("2")]) + write_files(
        control, "A2", "b", [file("2", "new")]
    )
    listed = [file("1"), file("2", "new"), file("3")]

    def compare(**changes):
        found = compare_files(control, Inputs(committed=2, parts=parts, **changes), listed)
        return sorted(found.again), sorted(found.changed)

    assert compare() == (["s3://b/1", "s3://b/2"], [])
    assert compare(without=("b",)) == (["s3://b/1"], ["s3://b/2"])
    assert compare(without=("a",)) == (["s3://b/2"], [])
    assert compare(without=("a", "b")) == ([], [])


def test_joined_parts_have_the_same_files(monkeypatch):
    monkeypatch.setattr("lakewriter.commit.read_files.MOST_PARTS", 2)
    control = make_control()
    parts = tuple(part for n in range(4) for part in write_files(control, f"A{n}", f"j{n}", [file(str(n))]))
    before = Inputs(committed=4, parts=parts, without=("j1",))
    joined = join_parts(control, "A5", before)
    assert joined is not None
    assert (joined.of, joined.without) == (tuple(part.key for part in parts), ("j1",))
    after = follow_load(before, InputsIntent(before=before, joined=joined), 4)
    assert after is not None
    assert (after.committed, after.without, [part.files for part in after.parts]) == (5, (), [3])
    found = compare_files(control, after, [file(str(n)) for n in range(4)])
    assert sorted(found.again) == ["s3://b/0", "s3://b/2", "s3://b/3"]
    assert join_parts(control, "A6", after) is None


FOLLOWED = [
    # the record before, what the load adds, changes committed by then, the record after: committed, parts, repeats
    (None, None, 0, None),
    (None, InputsIntent(before=Inputs(committed=0), adds=(A,)), 0, (1, (A,), False)),
    (Inputs(committed=1, parts=(A,)), InputsIntent(before=Inputs(committed=1, parts=(A,)), adds=(B,)), 1,
     (2, (A, B), False)),
    # Two appends were planned on one record, and both commit.
    (Inputs(committed=2, parts=(A, B)), InputsIntent(before=Inputs(committed=1, parts=(A,)), adds=(C,)), 2,
     (3, (A, B, C), False)),
    (Inputs(committed=1, parts=(A,)),
     InputsIntent(before=Inputs(committed=1, parts=(A,)), repeated=RepeatedFiles(files=1, again=1)), 1,
     (2, (A,), True)),
    # What may lack files lacks them for ever: a load that noted nothing, one whose list may be short, one before.
    (Inputs(committed=1, parts=(A,)), None, 1, (1, (A,), False)),
    (Inputs(committed=1, parts=(A,)),
     InputsIntent(before=Inputs(committed=1, parts=(A,)), adds=(B,), is_partial=True), 1, (1, (A, B), False)),
    (Inputs(committed=1, parts=(A,)), InputsIntent(before=Inputs(committed=1, parts=(A,)), adds=(B,)), 2,
     (1, (A, B), False)),
    # Another load has joined the part meanwhile.
    (Inputs(committed=2, parts=(B,)),
     InputsIntent(before=Inputs(committed=1, parts=(A,)), joined=JoinedParts(parts=(C,), of=("a",))), 2,
     (3, (B,), False)),
]  # fmt: skip


@pytest.mark.parametrize(("before", "intent", "committed", "expected"), FOLLOWED)
def test_the_record_after_a_load(before, intent, committed, expected):
    after = follow_load(before, intent, committed)
    assert (after and (after.committed, after.parts, after.repeats)) == expected


def test_the_record_after_other_changes():
    whole, repeated = Inputs(committed=3, parts=(A,)), Inputs(committed=3, parts=(A,), repeats=True)
    assert follow_other(whole, 3) == Inputs(committed=4, parts=(A,))
    assert follow_other(None, 3) is None
    assert follow_undo(whole, "a", 3, is_whole=False) == Inputs(committed=4, parts=(A,), without=("a",))
    assert follow_undo(repeated, "a", 3, is_whole=True) == repeated
    # Only the load that is undone was missing.
    missing = Inputs(committed=2, parts=(A,))
    assert follow_undo(missing, "a", 3, is_whole=False) == missing.model_copy(update={"without": ("a",)})
    assert follow_undo(missing, "a", 3, is_whole=True) == Inputs(committed=4, parts=(A,), without=("a",))
    assert follow_undo(None, "a", 3, is_whole=True) == Inputs(committed=4)
    assert follow_undo(None, "a", 3, is_whole=False) is None
