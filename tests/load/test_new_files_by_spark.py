"""``files: new`` of what Spark reads: text, views of a statement, patterns, folders of partitions, objects in S3."""

from typing import Any

import pytest

from tests.load.lakes import Lake

pytestmark = pytest.mark.spark

DAYS = "nyc_public/days"
CSV = {"format": "csv", "options": {"header": "true"}, "columns": "id INT, name STRING", "files": "new"}


def drop(lake: Lake, name: str, text: str) -> None:
    path = lake.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def load(lake: Lake, job_id: str) -> int:
    (result,) = lake.load(job_id).tables
    assert result.status == "done", (result.code, result.message)
    return result.rows


def describe(lake: Lake, read: dict[str, Any], **keys: object) -> None:
    lake.write({"table": "days", "schema": "public", "read": read, **keys}, update_aws_glue_catalog=False)


READS = [
    # read, further keys of the table
    (CSV | {"path": "in"}, {}),
    (CSV | {"path": "in/*.csv"}, {}),
    # Spark alone knows which files such options leave.
    (CSV | {"path": "in", "engine": "spark", "options": {"header": "true", "modifiedAfter": "2020-01-01"}}, {}),
    (CSV | {"path": "in"}, {"on_bad_row": "quarantine"}),
    ({"sql": "SELECT v.* FROM v JOIN w USING (id)", "views": {"v": CSV | {"path": "in"}, "w": {"format": "csv",
      "path": "w.csv", "columns": "id INT"}}}, {}),
]  # fmt: skip


@pytest.mark.one_in(6)
@pytest.mark.parametrize(("read", "keys"), READS, ids=["folder", "pattern", "listed by Spark", "quarantine", "view"])
def test_text(lake, read, keys):
    describe(lake, read, **keys)
    drop(lake, "w.csv", "1\n2\n3\n")
    # Spark takes such a name for a pattern.
    drop(lake, "in/day [1].csv", "id,name\n1,a\n")
    assert load(lake, "a") == 1
    assert load(lake, "b") == 0
    drop(lake, "in/day {2}.csv", "id,name\n2,b\n")
    drop(lake, "in/_hidden.csv", "id,name\n9,z\n")
    assert load(lake, "c") == 1
    assert load(lake, "d") == 0
    assert lake.rows("SELECT id, name FROM t ORDER BY id", DAYS) == [(1, "a"), (2, "b")]


def test_bad_rows_of_a_file_come_once(lake):
    describe(lake, CSV | {"path": "in"}, on_bad_row={"action": "quarantine", "at_most": 0.1})
    drop(lake, "in/1.csv", "id,name\n1,a\nx,b\n" + "".join(f"{number},c\n" for number in range(2, 400)))
    results = [lake.load(job).tables[0] for job in ("a", "b")]
    assert [(result.rows, result.set_aside and result.set_aside.rows) for result in results] == [(399, 1), (0, None)]


def test_folders_of_partitions(lake):
    """What a folder's name holds is a column, of new files as well."""
    describe(lake, {"format": "json", "path": "in", "columns": "id INT, day STRING", "files": "new"})
    drop(lake, "in/day=2024-01-01/a.json", '{"id": 1}\n')
    assert load(lake, "a") == 1
    drop(lake, "in/day=2024-01-02/a.json", '{"id": 2}\n')
    assert load(lake, "b") == 1
    assert lake.rows("SELECT id, day FROM t ORDER BY id", DAYS) == [(1, "2024-01-01"), (2, "2024-01-02")]
