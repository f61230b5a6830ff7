"""The statements of the documents' section on Athena, for the table they are written for."""

from pathlib import Path
from typing import get_args

import pytest

from lakewriter.dialects.lake_yaml import load_spec
from lakewriter.operate.queries import READERS, write_athena_queries
from lakewriter.spec.specification import FileEncoding
from tests.dialects.files import READ, lake

EXPECTED = [
    """SELECT *
FROM supaflow_postgres_public.accounts
WHERE _supa_job_id = 'latest-job-id'
LIMIT 100;""",
    """SELECT _supa_job_id, COUNT(*) as record_count, MIN(_supa_synced) as sync_time
FROM supaflow_postgres_public.accounts
GROUP BY _supa_job_id
ORDER BY sync_time DESC;""",
    # Within one load all rows have one _supa_synced, so _supa_index is added to the documented order.
    """SELECT * FROM (
SELECT *, ROW_NUMBER() OVER (PARTITION BY _supa_id ORDER BY _supa_synced DESC, _supa_index DESC) as rn
FROM supaflow_postgres_public.accounts
) WHERE rn = 1 AND _supa_deleted = false;""",
]


def test_athena(tmp_path):
    tables = [{"table": "accounts", "schema": "public", "read": READ}]
    spec = load_spec(lake(tmp_path, tables=tables, update_aws_glue_catalog=True, destination_prefix="postgres"))
    assert [query.sql for query in write_athena_queries(spec)] == EXPECTED
    assert [query.table for query in write_athena_queries(spec)] == ["supaflow_postgres_public.accounts"] * 3
    (latest, *_) = write_athena_queries(spec, {"supaflow_postgres_public.accounts": "abc123"})
    assert latest.sql == EXPECTED[0].replace("latest-job-id", "abc123")


NAMES = [
    # table, schema, how Athena wants it: a word that Trino reserves goes into quotes, no other name does
    ("Order", "public", 'FROM public."order"'),
    ("Group", "", 'FROM "group"'),
    ("values", "full", 'FROM "full"."values"'),
    ("orders", "sales", "FROM sales.orders"),
    ("123abc", "", "FROM _123abc"),
]


@pytest.mark.parametrize(("table", "schema", "expected"), NAMES)
def test_name(tmp_path, table, schema, expected):
    spec = load_spec(lake(tmp_path, tables=[{"table": table, "schema": schema, "read": READ}]))
    assert all(expected in query.sql.splitlines() for query in write_athena_queries(spec))


FILES = [
    # an example, what DuckDB reads of its first table: every load's files, by the function of their format
    ("estuary-s3-parquet", "read_parquet('s3://my-bucket/recentchanges/v*/*.parquet', union_by_name = true)"),
    ("airbyte-s3", "read_avro('s3://my-bucket/data_sync/test/public/users/*_*_*_*_*.avro')"),
    ("heropixel-s3", "read_csv('s3://my-bucket/data_output_path/public/users/*_*_*_*_*.csv.gz', union_by_name = true)"),
]


@pytest.mark.parametrize(("example", "expected"), FILES)
def test_files_without_tracking_columns(example, expected):
    (query, *_) = write_athena_queries(load_spec(Path("examples", f"{example}.yaml")))
    assert query.sql == f"SELECT *\nFROM {expected}\nLIMIT 100;"


def test_every_format_has_a_reader():
    """Formats are told by their ``kind``, and DuckDB has a function for each."""
    kinds = [kind for form in get_args(FileEncoding) for kind in get_args(form.model_fields["kind"].annotation)]
    assert sorted(kinds) == sorted(READERS)
