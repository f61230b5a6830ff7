"""A database as its quickstart says, two days long, and its newest rows by a merge beside them."""

import json
import re

import pytest
import yaml

from lakewriter.local_server.server import LocalServer
from tests.docs.worlds import require_local
from tests.interop.maven import jars
from tests.interop.postgresql import DRIVER, USER, serving
from tests.interop.test_postgresql import run
from tests.load.lakes import ROOT, Lake

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900), pytest.mark.exhaustive]

PAGE = ROOT / "docs" / "quickstarts" / "database.md"
URL = "jdbc:postgresql://db.example.com:5432/shop"
DAY_ONE = """
CREATE TABLE orders (order_id bigint PRIMARY KEY, status text, updated_at timestamptz NOT NULL);
INSERT INTO orders SELECT n, 'new', now() - interval '1 day' + n * interval '1 hour' FROM generate_series(1, 3) n;
"""
DAY_TWO = """
UPDATE orders SET status = 'paid', updated_at = now() WHERE order_id = 1;
DELETE FROM orders WHERE order_id = 2;
INSERT INTO orders VALUES (4, 'new', now());
"""


def test_two_days_and_a_merge(tmp_path, aws, bucket):
    """The block is run as printed, but for the database's address."""
    require_local()
    jars([DRIVER])
    block = re.search(r"```sh\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert block is not None
    script = block[1]
    assert {URL, "DB_USER=reader"} <= set(re.findall(r"jdbc:\S+|DB_USER=\w+", script))
    lake = Lake(tmp_path, aws, None)  # type: ignore[arg-type]
    environment = f"{script.splitlines()[0]}; export DB_PASSWORD=-"
    shown = []
    with serving() as database:
        database.execute(DAY_ONE)
        try:
            run(lake, ["bash", "-ec", script.replace(URL, database.url).replace("DB_USER=reader", f"DB_USER={USER}")])
            content = yaml.safe_load(lake.file.read_text("utf-8"))
            content["pipeline"], content["destination"]["catalog"] = "merged", "iceberg"
            content["tables"][0] |= {"table": "orders_now", "mode": "merge", "order_by": ["updated_at"]}
            (lake.folder / "merged.yaml").write_text(yaml.safe_dump(content), "utf-8")
            run(lake, ["bash", "-ec", f"{environment}; lakewriter run merged.yaml --local"])
            database.execute(DAY_TWO)
            run(lake, ["bash", "-ec", f"{environment}; for f in lake merged; do lakewriter run $f.yaml --local; done"])
            for file, table in (("lake", "orders"), ("merged", "orders_now")):
                rows = f"SELECT order_id, status FROM public_{table} ORDER BY order_id, status"
                done = run(lake, ["lakewriter", "sql", f"{file}.yaml", "--local", "--json", rows])
                shown.append(json.loads(done.stdout)["rows"])
        finally:
            LocalServer.beside(lake.file).stop()
    # A cursor does not see the row that was deleted; its lag reads the last row again, which a merge does not add.
    assert shown == [
        [[1, "new"], [1, "paid"], [2, "new"], [3, "new"], [3, "new"], [4, "new"]],
        [[1, "paid"], [2, "new"], [3, "new"], [4, "new"]],
    ]
