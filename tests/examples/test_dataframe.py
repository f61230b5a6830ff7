"""The program of ``examples/dataframe``, run twice for one day."""

import pytest

from examples.dataframe.write import LAKE, write_tables
from tests.load.lakes import PREFIX, Lake

pytestmark = pytest.mark.spark


def test_a_program_writes_each_row_once(tmp_path, aws, bucket, spark, capsys):
    lake = Lake(tmp_path, aws, spark)
    lake.file.write_text(LAKE.read_text("utf-8").replace("acme-lake/production", f"{bucket}/{PREFIX}"), "utf-8")
    clicks = tmp_path / "clicks"
    clicks.mkdir()
    (clicks / "1.json").write_text('{"seen_at": "2026-11-22T10:00:00Z", "page": "/"}\n', "utf-8")
    for _ in range(2):
        write_tables(spark, "2026-11-22", str(clicks), lake.file)
    assert capsys.readouterr().out == "customers: done, 2 rows\ncustomers: already_done, 2 rows\n"
    assert lake.rows("SELECT customer_id, name FROM t ORDER BY 1", "customers") == [(1, "Ada"), (2, "Grace")]
    assert lake.rows("SELECT count(*), count(DISTINCT order_id), sum(amount) FROM t", "orders") == [(100, 100, 7425)]
    assert lake.rows("SELECT CAST(seen_at AS VARCHAR), page FROM t", "clicks") == [("2026-11-22 10:00:00+00", "/")]
