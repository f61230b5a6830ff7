"""Readers that go on while a table is refreshed, and refreshes are undone: each read sees one load, and all of it."""

from collections import Counter

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.iceberg.test_readers import extension
from tests.load.lakes import BUCKET
from tests.load.refreshed import FOLDER, Refreshed
from tests.operate.test_undo_readers import Reader

ROUNDS = [2, pytest.param(200, marks=[pytest.mark.exhaustive, pytest.mark.timeout(3600)])]
WHOLE = 4
"""Rows of each load, in two files."""


def connect(users):
    connection = duckdb.connect()
    connection.execute(f"SET autoinstall_known_extensions = false; LOAD '{extension('httpfs')}'")
    host = users.aws.url.removeprefix("http://")
    connection.execute(
        "CREATE SECRET (TYPE s3, KEY_ID 'AKIAIOSFODNN7EXAMPLE', SECRET 'secret', REGION 'us-east-1', "
        f"ENDPOINT '{host}', URL_STYLE 'path', USE_SSL false)"
    )
    return connection


def count_loads(connection, files):
    return Counter(dict(connection.sql(f"SELECT _load_id, count(*) FROM read_parquet({files}) GROUP BY 1").fetchall()))


def read_snapshot(users):
    """As PyIceberg does: the table, then its files."""
    return lambda: Counter(users.iceberg().scan(selected_fields=("_load_id",)).to_arrow()["_load_id"].to_pylist())


def read_location(users):
    """DuckDB over what Glue says is the table's location."""
    connection = connect(users)

    def read():
        location = users.glue_table()["StorageDescriptor"]["Location"]
        return count_loads(connection, f"'{location}/*.parquet'")

    return read


def read_named(users):
    """DuckDB over the files that the table's object names."""
    connection = connect(users)

    def read():
        connection.execute(
            f"SET VARIABLE f = (SELECT files FROM read_json('s3://{BUCKET}/{FOLDER}_latest/files.json'))"
        )
        return count_loads(connection, "getvariable('f')")

    return read


@pytest.mark.one_in(3)
@pytest.mark.usefixtures("small_files_apart")
@pytest.mark.parametrize("rounds", ROUNDS)
@pytest.mark.parametrize(
    ("catalog", "open_reader"),
    [("iceberg", read_snapshot), ("glue", read_location), ("none", read_named)],
    ids=["snapshot", "location", "named"],
)
def test_a_reader_sees_one_load(tmp_path, aws, bucket, catalog, open_reader, rounds):
    users = Refreshed(tmp_path, aws, catalog, grace_minutes=15)
    (tmp_path / "users").mkdir()
    rows = pa.table({"id": [1, 2]})
    pq.write_table(rows, tmp_path / "users" / "1.parquet")
    users.load("first", id=[3, 4])
    read = open_reader(users)
    assert read() == {"first": WHOLE}
    reader = Reader(read)
    reader.start()
    for number in range(rounds):
        assert users.load(f"n{number}", id=[3, 4]).tables[0].files == 2
        users.undo(f"n{number}").run()
        users.load(f"m{number}", id=[3, 4])
    reader.stop.set()
    reader.join(60)
    assert reader.error is None
    assert reader.seen.keys() == {WHOLE}
    assert sum(reader.seen.values()) == reader.reads >= rounds
    assert read() == {f"m{rounds - 1}": WHOLE}
