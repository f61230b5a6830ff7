"""What every way writes: flights of mixed types with nulls, a unique key, a random token, and the tracking columns."""

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from examples.demo.demo import packaged

ROWS_A_FILE = 336_776
KEYS = ("time_hour", "carrier", "flight")
TRACKED = f"""
    SELECT * EXCLUDE (file_index, file_row_number), now() AS _supa_synced, false AS _supa_deleted,
        file_index * {ROWS_A_FILE} + file_row_number + 1 AS _supa_index,
        sha256(concat_ws('|', time_hour, carrier, flight)) AS _supa_id, 'bench' AS _supa_job_id
    FROM (SELECT *, file_index FROM read_parquet({{files}}, file_row_number = true))
"""
"""The rows with the five tracking columns, by DuckDB: what a user without Lakewriter might write.

The index is of the file and the row in it, and not of a window over all rows, which one thread would count.
"""


def sources(folder: Path, copies: int) -> int:
    """Fill ``folder`` with one Parquet file a copy; the rows in all. Row ids go on from file to file."""
    folder.mkdir(parents=True)
    flights = packaged("flights")
    place = flights.schema.get_field_index("time_hour")
    flights = flights.set_column(place, "time_hour", flights["time_hour"].cast(pa.timestamp("us", "UTC")))
    for copy in range(copies):
        first = copy * flights.num_rows
        query = f"SELECT {first} + row_number() OVER () AS row_id, md5(row_id::VARCHAR)[:16] AS token, * FROM flights"
        pq.write_table(duckdb.sql(query).to_arrow_table(), folder / f"{copy:03}.parquet")
    return int(flights.num_rows * copies)


def make_small_files(folder: Path, *, files: int, rows: int) -> None:
    """Files of so many flights each."""
    sources(folder.parent / "whole", 1)
    whole = pq.read_table(next((folder.parent / "whole").glob("*.parquet")))
    folder.mkdir(parents=True)
    for number in range(files):
        pq.write_table(whole.slice(number * rows % (ROWS_A_FILE - rows), rows), folder / f"{number:04}.parquet")
