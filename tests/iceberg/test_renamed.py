"""Columns that a load renames in its own commit: the field keeps its id, and every reader by id its values."""

import random
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.transforms import IdentityTransform

from lakewriter.errors import LakeError, SchemaIncompatibleError
from lakewriter.records.facets import MergeIntent, UndoneLoad
from lakewriter.spec.readers import WHO_NOTICES
from tests.commit import intents
from tests.iceberg.commits import Table, strays
from tests.iceberg.test_format3 import read_by_duckdb
from tests.iceberg.test_merge import apply, foreign
from tests.load.lakes import BUCKET
from tests.support.narrow import need
from tests.support.open_catalog import OpenCatalog

EMAIL, MAIL = {"id": 1, "email": "a@x"}, {"id": 2, "mail": "b@x"}
RENAMES = {"email": "mail"}


def append(table: Table, number: int, *rows: dict[str, Any], fields: tuple[str, ...] = ()) -> Any:
    """A load that is made ready and not published yet."""
    written = pa.Table.from_pylist(list(rows))
    if fields:
        return table.partitioned(f"j{number}", written, *fields, committed=number - 1)
    return table.intent(f"j{number}", written, committed=number - 1)


def make_table(aws: Any, open_catalog: OpenCatalog | None = None, version: int = 2) -> Table:
    """A table of one load with the column's name before, whose next loads rename it."""
    table = Table(aws, open_catalog)
    table.action = table.action.model_copy(update={"format_version": version})
    table.publish(append(table, 1, EMAIL), 1)
    table.renames = RENAMES
    return table


def names(table: Table) -> dict[int, str]:
    return {field.field_id: field.name for field in table.seen.schema().fields}


def rows(table: Table) -> list[dict[str, Any]]:
    return sorted(table.seen.scan().to_arrow().to_pylist(), key=lambda row: row["id"])


def check_renamed(table: Table) -> None:
    """One commit after the first load: the name and the rows of the second one are there together."""
    before = names(table)
    found = append(table, 2, MAIL)
    assert (names(table), len(rows(table))) == (before, 1)
    versions = len(table.seen.metadata.metadata_log)
    table.publish(found, 2)
    assert names(table) == {1: "id", 2: "mail"}
    assert rows(table) == [{"id": 1, "mail": "a@x"}, MAIL]
    assert len(table.seen.metadata.metadata_log) == versions + 1
    assert need(table.seen.current_snapshot()).schema_id == table.seen.schema().schema_id
    # At a retry, by another process too, nothing is renamed again.
    table.publish(found, 2)
    schemas = len(table.seen.schemas())
    table.publish(append(table, 3, {"id": 3, "mail": "c@x"}), 3)
    assert (len(table.seen.schemas()), len(rows(table))) == (schemas, 3)
    assert strays(table.aws, table.seen) == set()


@pytest.mark.parametrize("version", [2, 3])
def test_renamed_with_the_rows(aws, bucket, version):
    table = make_table(aws, version=version)
    check_renamed(table)
    aws.hide_missing = False
    assert [row["mail"] for row in read_by_duckdb(table, "id, mail", "id")] == ["a@x", "b@x", "c@x"]


def test_renamed_in_a_rest_catalog(aws, bucket):
    with OpenCatalog(aws, bucket) as catalog:
        check_renamed(make_table(aws, catalog))


def test_columns_that_are_added_beside_it(aws, bucket):
    """They are added before the files are written, under the names that the table has until the commit."""
    table = make_table(aws)
    found = append(table, 2, MAIL | {"more": 5})
    assert names(table) == {1: "id", 2: "email", 3: "more"}
    table.publish(found, 2)
    assert names(table) == {1: "id", 2: "mail", 3: "more"}
    assert [(row["mail"], row["more"]) for row in rows(table)] == [("a@x", None), ("b@x", 5)]


def test_said_before(aws, bucket):
    table = make_table(aws)
    schema = pa.schema([("id", pa.int64()), ("mail", pa.string()), ("more", pa.string())])
    assert table.plan(schema) == [
        f"rename column email of db.t to mail in the commit of the load: {WHO_NOTICES}",
        "add column more string to db.t",
    ]
    table.publish(append(table, 2, MAIL), 2)
    assert table.plan(schema) == ["add column more string to db.t"]


REFUSED = [
    # columns of the table, what is renamed, words of the error
    (["id", "email", "mail"], RENAMES, "has columns 'email' and 'mail'"),
    (["id", "e"], RENAMES, "has no column 'email' to rename to 'mail', nor 'mail'; it has 'id', 'e'"),
    (["id", "email", "v"], {"v": "ID"}, "has columns 'v' and 'id'"),
]


@pytest.mark.parametrize(("columns", "renames", "said"), REFUSED)
def test_refused(aws, bucket, columns, renames, said):
    table = Table(aws)
    table.ready("j1", pa.schema([(name, pa.string()) for name in columns]))
    table.renames = renames
    for ask in (table.plan, lambda schema: table.ready("j2", schema)):
        with pytest.raises(SchemaIncompatibleError) as error:
            ask(pa.schema([("id", pa.string()), (next(iter(renames.values())), pa.string())]))
        assert said in error.value.message
    assert list(names(table).values()) == columns


def test_name_of_a_field_of_the_partition_is_refused(aws, bucket):
    """As Iceberg's libraries refuse it: https://iceberg.apache.org/spec/#partitioning"""
    table = Table(aws)
    table.publish(append(table, 1, EMAIL, fields=("bucket(4, id)",)), 1)
    table.renames = {"email": "id_bucket"}
    with pytest.raises(SchemaIncompatibleError, match="does not take the renaming of 'email' to 'id_bucket'"):
        table.plan(pa.schema([("id", pa.int64()), ("id_bucket", pa.string())]))


def rename(name: str) -> Any:
    return lambda table: table.update_schema().rename_column("email", name).commit()


def add_mail(table: Any) -> None:
    with table.update_schema() as update:
        update.union_by_name(pa.schema([("mail", pa.string())]))


def drop(table: Any) -> None:
    with table.update_schema(allow_incompatible_changes=True) as update:
        update.delete_column("email")


BETWEEN = [
    # what another writer does once the load's files are written, the columns after the load; None where it fails
    (rename("mail"), {1: "id", 2: "mail"}),
    (rename("e"), {1: "id", 2: "e"}),
    (drop, {1: "id"}),
    (add_mail, None),
]


@pytest.mark.parametrize(("act", "after"), BETWEEN)
def test_another_writer_comes_between(aws, bucket, act, after):
    table = make_table(aws)
    found = append(table, 2, MAIL)
    act(foreign(table))
    if after is None:
        with pytest.raises(LakeError, match="another column of the name 'mail'"):
            table.publish(found, 2)
        return
    table.publish(found, 2)
    assert names(table) == after
    assert [list(row.values())[1:] for row in rows(table)] == ([["a@x"], ["b@x"]] if len(after) > 1 else [[], []])


def test_load_with_the_old_name_comes_after(aws, bucket):
    """Two loads at once: the one that was prepared under the old name finds its column by its id."""
    table = make_table(aws)
    table.renames = {}
    late = append(table, 3, {"id": 3, "email": "c@x"})
    table.renames = RENAMES
    table.publish(append(table, 2, MAIL), 2)
    table.publish(late, 3)
    assert [row["mail"] for row in rows(table)] == ["a@x", "b@x", "c@x"]


def test_undo_leaves_the_name(aws, bucket):
    """As it leaves columns that the load added: rows are taken back, and names stay."""
    table = make_table(aws)
    found = append(table, 2, MAIL)
    table.publish(found, 2)
    files = tuple(f"s3://{BUCKET}/{key}" for key in found.files.list_keys())
    undone = UndoneLoad(
        job_id="j2", attempt="j21", files=1, rows=1, reason="", next="n", snapshot_before=None, locations=files
    )
    own = {"job_id": "undo.j2", "attempt": "u1", "undoes": undone}
    table.publish(intents.recast(found, "undo", cursor_before=None, cursor_after=None, **own), 3)
    assert rows(table) == [{"id": 1, "mail": "a@x"}]
    table.publish(append(table, 4, MAIL), 4)
    assert rows(table) == [{"id": 1, "mail": "a@x"}, MAIL]


def test_renamed_back(aws, bucket):
    table = make_table(aws)
    table.publish(append(table, 2, MAIL), 2)
    table.renames = {"mail": "email"}
    table.publish(append(table, 3, {"id": 3, "email": "c@x"}), 3)
    assert [row["email"] for row in rows(table)] == ["a@x", "b@x", "c@x"]
    assert len(table.seen.schemas()) == 2


def keep_order(table: Any) -> None:
    with table.update_sort_order() as update:
        update.asc("email", IdentityTransform())


def test_order_and_files_of_the_table(aws, bucket):
    """The sort order has the column's id; a compaction writes files of both names as one."""
    table = make_table(aws)
    keep_order(foreign(table))
    for number in range(2, 7):
        table.publish(append(table, number, {"id": number, "mail": "b@x"}), number)
    assert [field.source_id for field in table.seen.sort_order().fields] == [2]
    table.publish(table.compacted("c1", 6), 7)
    assert [row["mail"] for row in rows(table)] == ["a@x", *["b@x"] * 5]
    assert len(list(table.seen.scan().plan_files())) == 1


def test_column_of_the_partition(aws, bucket):
    """The partition's field keeps its name and the column's id."""
    table = Table(aws)
    table.publish(append(table, 1, EMAIL, fields=("email", "bucket(4, id)")), 1)
    table.renames = RENAMES
    table.publish(append(table, 2, MAIL, fields=("mail", "bucket(4, id)")), 2)
    assert [(field.source_id, field.name) for field in table.seen.spec().fields] == [(2, "email"), (1, "id_bucket")]
    assert rows(table) == [{"id": 1, "mail": "a@x"}, MAIL]
    assert len(table.seen.scan("mail == 'a@x'").to_arrow()) == 1


def make_rows(rng: random.Random, number: int) -> list[dict[str, Any]]:
    return [
        {
            "id": rng.randrange(12),
            "at": rng.randrange(number * 3),
            "day": "a",
            "v": f"{number}-{place}",
            "gone": rng.random() < 0.2,
        }
        for place in range(8)
    ]


@pytest.mark.parametrize("version", [2, 3])
def test_columns_of_a_merge(aws, bucket, version):
    """Key, order and mark are renamed between merges; the rule of ``apply`` knows nothing of names."""
    rng, table, expected = random.Random(version), Table(aws), dict[Any, dict[str, Any]]()
    table.action = table.action.model_copy(update={"format_version": version})
    called = {"id": "id", "at": "at", "gone": "gone", "day": "day", "v": "v"}
    for number in range(1, 7):
        before = dict(called)
        called |= {2: {"id": "number"}, 3: {"at": "seen", "gone": "deleted"}, 5: {"id": "id"}}.get(number, {})
        table.renames = {before[name]: now for name, now in called.items() if before[name] != now}
        batch = make_rows(rng, number)
        apply(expected, batch)
        found = append(table, number, *({called[name]: value for name, value in row.items()} for row in batch))
        by = MergeIntent(keys=(called["id"],), order_by=(called["at"],), deleted=called["gone"])
        table.publish(intents.recast(found, "merge", merge=by), number)
        seen = table.seen.scan().to_arrow().rename_columns({now: name for name, now in called.items()}).to_pylist()
        wanted = sorted(expected.values(), key=lambda row: row["id"])
        assert sorted(seen, key=lambda row: row["id"]) == wanted
    assert sorted(names(table)) == [1, 2, 3, 4, 5]
