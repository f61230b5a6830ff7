"""Which changes of a table's columns and files break its readers: the table of docs/plan.md."""

import pytest

from lakewriter.operate.column_changes import is_widened, list_changes, list_layout_changes
from lakewriter.operate.written_columns import Written

WIDER = [
    # old type, new type, whether readers take it: https://iceberg.apache.org/spec/#schema-evolution
    ("int", "bigint", True),
    ("tinyint", "smallint", True),
    ("bigint", "int", False),
    ("float", "double", True),
    ("double", "float", False),
    ("int", "double", False),
    ("bigint", "decimal(38,0)", False),
    ("decimal(10,2)", "decimal(12,2)", True),
    ("decimal(10,2)", "decimal(12,3)", False),
    ("decimal(12,2)", "decimal(10,2)", False),
    ("string", "bigint", False),
    ("date", "timestamp", False),
    ("timestamp_ntz", "timestamp", False),
    ("struct<a:int>", "struct<a:bigint>", False),
]


@pytest.mark.parametrize(("before", "after", "expected"), WIDER)
def test_types_that_readers_take_for_longer_ones(before: str, after: str, expected: bool) -> None:
    assert is_widened(before, after) is expected


LONGER = "a longer type of the same values, which readers take"
EARLIER = "null in the rows of earlier loads"
THESE = "null in the rows of this load"
FILES = "old and new files together fail, or give values of another type"
PLACES = "by position, one column is taken for another"

CHANGES: list[tuple[str, dict[str, str], dict[str, str], list[tuple[str, str, bool]]]] = [
    # format, columns before, columns now; the line of the diff, its effect, whether readers break
    ("parquet", {"a": "int"}, {"a": "int"}, []),
    ("parquet", {"a": "int"}, {"A": "int"}, []),
    ("parquet", {"a": "int", "b": "date"}, {"b": "date", "a": "int"}, []),
    ("parquet", {"a": "int"}, {"a": "int", "vip": "boolean"}, [("+ vip boolean", EARLIER, False)]),
    ("parquet", {"note": "string", "a": "int"}, {"a": "int"}, [("- note string", THESE, False)]),
    ("parquet", {"a": "int"}, {"a": "bigint"}, [("! a int -> bigint", LONGER, False)]),
    ("parquet", {"zip": "string"}, {"zip": "bigint"}, [("! zip string -> bigint", FILES, True)]),
    ("avro", {"a": "union<long,string>"}, {"a": "string"}, [("! a union<long,string> -> string", FILES, True)]),
    ("table", {"a": "string"}, {"a": "date"}, [
        ("! a string -> date", "the table has one type for all its rows", True)]),
    ("jsonl", {"a": "", "b": ""}, {"b": "", "c": ""}, [("+ c", EARLIER, False), ("- a", THESE, False)]),
    ("csv", {"a": "", "b": ""}, {"a": "", "b": "", "c": ""}, [("+ c", EARLIER, False)]),
    ("csv", {"a": "", "b": ""}, {"a": ""}, [("- b", THESE, False)]),
    ("csv", {"a": "", "b": ""}, {"b": "", "a": ""}, [("! column 1 a -> b", PLACES, True)]),
    ("csv", {"a": "", "b": ""}, {"a": "", "x": "", "b": ""}, [
        ("+ x", EARLIER, False), ("! column 2 b -> x", PLACES, True)]),
    ("csv", {"a": "", "b": "", "c": ""}, {"a": "", "c": ""}, [
        ("- b", THESE, False), ("! column 2 b -> c", PLACES, True)]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "before", "after", "expected"), CHANGES)
def test_changes_of_columns(
    kind: str, before: dict[str, str], after: dict[str, str], expected: list[tuple[str, str, bool]]
) -> None:
    changes = list_changes(Written(kind, before), after, kind)
    assert [(change.text, change.effect, change.breaks) for change in changes] == expected


REPLACED: list[tuple[dict[str, str], dict[str, str], list[tuple[str, str, bool]]]] = [
    # columns of the refresh before and of this one: no reader has files of both
    ({"a": "int"}, {"a": "int", "vip": "boolean"}, [("+ vip boolean", "", False)]),
    ({"note": "string", "a": "int"}, {"a": "int"}, [("- note string", "queries that name it fail", True)]),
    ({"a": "int"}, {"a": "bigint"}, [("! a int -> bigint", LONGER, False)]),
    ({"zip": "string"}, {"zip": "bigint"}, [
        ("! zip string -> bigint", "queries that expect string fail, or mean another thing", True)]),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "expected"), REPLACED)
def test_changes_of_a_table_that_is_replaced(before, after, expected):
    changes = list_changes(Written("parquet", before), after, "parquet", is_replaced=True)
    assert [(change.text, change.effect, change.breaks) for change in changes] == expected


def test_of_another_format_only_names_are_compared() -> None:
    changes = list_changes(Written("csv", {"a": "", "b": ""}), {"b": "bigint", "c": "date"}, "parquet")
    assert [(change.text, change.breaks) for change in changes] == [("+ c date", False), ("- a", False)]


LAYOUTS = [
    # old file, its format, the first new file, its format, whether today's layout gives such names; what breaks
    ("t/p-1.parquet", "parquet", "t/p-2.parquet", "parquet", True, ()),
    ("t/p-1.parquet", "parquet", "t/x-2.parquet", "parquet", False, ()),
    ("t/d=2026-01-01/p.parquet", "parquet", "t/d=2026-01-02/p.parquet", "parquet", False, ()),
    ("t/1/a.parquet", "parquet", "t/123e4567-e89b-12d3-a456-426614174000/a.parquet", "parquet", False, ()),
    ("t/d=2026-01-01/p.parquet", "parquet", "t/p.parquet", "parquet", False,
     ("the files go to the folder t, they were in t/d=2026-01-01",)),
    ("t/d=2026-01-01/p.parquet", "parquet", "t/p.parquet", "parquet", True,
     ("the files go to the folder t, they were in t/d=2026-01-01",)),
    ("t/d=1/p.parquet", "parquet", "t/e=1/p.parquet", "parquet", True,
     ("the files go to the folder t/e=1, they were in t/d=1",)),
    ("t/id=a/p.parquet", "parquet", "t/id=b/p.parquet", "parquet", True, ()),
    ("t/p.parquet", "parquet", "t/p.csv.gz", "csv", False, ("the files become csv, they were parquet",)),
]  # fmt: skip


@pytest.mark.parametrize(("old", "old_kind", "new", "new_kind", "is_known", "expected"), LAYOUTS)
def test_changes_of_files(
    old: str, old_kind: str, new: str, new_kind: str, is_known: bool, expected: tuple[str, ...]
) -> None:
    assert list_layout_changes(Written(old_kind, {}, old), new, new_kind, is_known=is_known) == expected
