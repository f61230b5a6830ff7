"""One table by the splits feed, by SQL and by a continuous run: the same rows, of random tables in every format."""

import csv
import io
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from lakewriter.source.feed import open_feed
from lakewriter.source.files import file_source as files_source
from lakewriter.source.request import RowsRequest
from lakewriter.spec.table_spec import Read
from tests.source.tables import show, table
from tests.source.test_file_streams import run

pytestmark = pytest.mark.spark

TEXTS = [
    "",
    " ",
    "a",
    "é\u2028",
    'q"uote',
    "a,b;c",
    "line\nbreak",
    "007",
    "1e3",
    "NULL",
    "\\",
    "\U0001f600",
    "x" * 300,
]
Row = dict[str, Any]


def make_value(chance: random.Random, kind: str) -> Any:
    if chance.random() < 0.15:
        return None
    values = {
        "i": lambda: chance.choice([0, -1, 2**31 - 1, 2**63 - 1, chance.randrange(10**6)]),
        "d": lambda: chance.choice([0.5, -1e300, 1e-7, chance.random()]),
        "t": lambda: chance.choice(TEXTS),
        "b": lambda: chance.random() < 0.5,
    }
    return values[kind]()


def write_csv(rows: Sequence[Row], path: Path) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator=random.Random(path.name).choice(["\n", "\r\n"]))
    writer.writerow(rows[0])
    for row in rows:
        writer.writerow(row.values())
    path.write_text(text.getvalue(), "utf-8", newline="")


def write_json(rows: Sequence[Row], path: Path) -> None:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")


def write_text(rows: Sequence[Row], path: Path) -> None:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")


def write_parquet(rows: Sequence[Row], path: Path) -> None:
    kinds = {"i": pa.int64(), "d": pa.float64(), "t": pa.string(), "b": pa.bool_()}
    schema = pa.schema([(name, kinds[name[0]]) for name in rows[0]])
    pq.write_table(pa.Table.from_pylist(list(rows), schema), path, row_group_size=3)


def write_orc(rows: Sequence[Row], path: Path) -> None:
    kinds = {"i": pa.int64(), "d": pa.float64(), "t": pa.string(), "b": pa.bool_()}
    schema = pa.schema([(name, kinds[name[0]]) for name in rows[0]])
    orc.write_table(pa.Table.from_pylist(list(rows), schema), path)


def write_avro(rows: Sequence[Row], path: Path) -> None:
    kinds = {"i": "long", "d": "double", "t": "string", "b": "boolean"}
    fields = [{"name": name, "type": ["null", kinds[name[0]]]} for name in rows[0]]
    with path.open("wb") as out:
        fastavro.writer(out, {"type": "record", "name": "r", "fields": fields}, rows)


WRITERS = {
    "csv": write_csv, "json": write_json, "text": write_text, "parquet": write_parquet, "orc": write_orc,
    "avro": write_avro,
}  # fmt: skip


def write_tables(chance: random.Random, form: str, folder: Path) -> None:
    """One file to three, of which each may lack a column."""
    kinds = [f"{chance.choice('idtb')}{place}" for place in range(chance.randint(1, 5))]
    is_parted = chance.random() < 0.4
    for number in range(chance.randint(1, 3)):
        names = [name for name in kinds if name == kinds[0] or chance.random() < 0.8]
        rows = [{name: make_value(chance, name[0]) for name in names} for _ in range(chance.randint(1, 12))]
        rows.append({name: make_value(random.Random(0), name[0]) for name in names})
        place = folder / (f"k=0{number}" if is_parted else ".")
        place.mkdir(exist_ok=True)
        WRITERS[form](rows, place / f"{number}.{form}")


def order(rows: Sequence[Row]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True, default=str) for row in rows)


def read_all(feed: Any) -> list[Row]:
    names = feed.schema.names
    rows = [dict(zip(names, row, strict=True)) for text in feed.run(show) for row in json.loads(text)[1]]
    feed.close()
    return rows


CASES = [(form, seed) for seed in range(12) for form in sorted(files_source._MAKE)]


@pytest.mark.one_in(9)
@pytest.mark.parametrize(("form", "seed"), CASES)
def test_same_rows_in_every_way(spark, tmp_path, form, seed):
    chance, folder = random.Random(f"{form} {seed}"), tmp_path / "in"
    folder.mkdir()
    write_tables(chance, form, folder)
    options = {"header": "true"} if form == "csv" else {}
    read = {"format": form, "path": str(folder), "options": options}
    splits = open_feed(RowsRequest(lambda: spark, table(**read)))
    assert splits.kind == "splits"
    names, rows = splits.schema.names, read_all(splits)
    by_sql = table(sql="SELECT * FROM v", views={"v": Read(**read)})
    assert order(read_all(open_feed(RowsRequest(lambda: spark, by_sql)))) == order(rows)
    streamed = table(**read | {"options": options | {"maxFilesPerTrigger": "1"}})
    batches = run(spark, streamed, tmp_path / "c")
    assert all(list(row) == names for batch in batches for row in batch)
    assert order([row for batch in batches for row in batch]) == order(rows)
