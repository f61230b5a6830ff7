"""The Iceberg project's own Java client signs in to each REST catalog by the statements that ``queries`` prints."""

import json
import os
import re
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pytest
import yaml

from lakewriter.dialects.lake_yaml import load_spec
from lakewriter.operate.queries import write_queries
from lakewriter.operate.sql_text import Engine
from tests.iceberg.commits import Table
from tests.interop.maven import jars
from tests.interop.test_iceberg_runtime import JARS
from tests.load.lakes import BUCKET
from tests.support.sign_ins import SIGN_INS

pytestmark = [pytest.mark.spark, pytest.mark.exhaustive]


def list_statements(folder: Path, settings: dict[str, str], name: str, endpoint: str) -> list[str]:
    """The printed settings and query, for a catalog of this name in Spark, with the embedded S3 beside them."""
    destination = {"type": "lakewriter-s3", "location": f"s3://{BUCKET}/data/production", "region": "us-east-1"}
    table = {"table": "t", "schema": "db", "read": {"format": "csv", "path": "a.csv"}}
    file = folder / "lake.yaml"
    content = {"pipeline": "p", "destination": destination | settings, "tables": [table]}
    file.write_text(yaml.safe_dump(content), "utf-8")
    written = write_queries(load_spec(file), [Engine.SPARK])
    (setup,) = (query.sql for query in written if query.table == "all")
    (query,) = (query.sql for query in written if query.title == "Query a table")
    store = {"s3.endpoint": endpoint, "s3.path-style-access": "true"}
    lines = [
        *setup.splitlines()[1:],
        *(f"SET `spark.sql.catalog.lake.{key}` = `{value}`" for key, value in store.items()),
    ]
    return [re.sub(r"(catalog\.|FROM `)lake\b", rf"\1{name}", line.rstrip(";"))
            for line in [*lines, query]]  # fmt: skip


def test_spark_reads_by_each_sign_in(aws, bucket, tmp_path):
    classpath = ",".join(map(str, jars(JARS, sha256=JARS)))
    aws.hide_missing = False
    with ExitStack() as stack:
        statements: dict[str, list[str]] = {}
        secrets: dict[str, str] = {}
        for number, (name, make) in enumerate(SIGN_INS.items()):
            catalog = stack.enter_context(make(aws, bucket))
            catalog.base = f"open/{name}"
            table = Table(aws, catalog)
            table.publish(table.intent("a", pa.table({"id": [number]})), 1)
            statements[name] = list_statements(tmp_path, catalog.make_settings(), name, aws.url)
            secrets |= dict([catalog.secret])
        file = tmp_path / "statements.json"
        file.write_text(json.dumps(statements), "utf-8")
        script = Path(__file__).parent / "read_rest_with_spark.py"
        done = subprocess.run(
            [sys.executable, str(script), classpath, str(file)],
            env=os.environ | secrets, capture_output=True, text=True, timeout=240, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr[-20000:]
    found = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("FOUND"))[5:])
    assert found == {name: [number] for number, name in enumerate(SIGN_INS)}
