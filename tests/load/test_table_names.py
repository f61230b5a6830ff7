"""A table's path stays with it, whatever tables whose names collide with its own come beside it in lake.yaml."""

import json
from typing import Any

import pytest

from lakewriter.aws import Clients
from lakewriter.naming import ControlKeys
from lakewriter.operate.planning import plan
from tests.load.lakes import BUCKET, PREFIX

pytestmark = pytest.mark.spark


class Names:
    """A pipeline of Parquet files whose tables are renamed, each with one row that has the table's name."""

    def __init__(self, lake: Any) -> None:
        self.lake, self.loads = lake, 0

    def load(self, *tables: str, **written_as: str) -> list[str | None]:
        """Load the tables; the codes of what keeps each from it."""
        self.loads += 1
        self.write(tables, written_as)
        report = self.lake.load(f"job{self.loads}")
        return [result.code for result in report.tables]

    def write(self, tables: tuple[str, ...], written_as: dict[str, str]) -> None:
        entries = []
        for number, name in enumerate(tables):
            file = self.lake.csv(f"{number}.csv", f"of\n{name}\n")
            read = {"format": "csv", "path": file, "options": {"header": "true"}}
            key = name.replace("-", "_").replace(" ", "__")
            pin = {"written_as": written_as[key]} if key in written_as else {}
            entries.append({"table": name, "schema": "s", "read": read} | pin)
        self.lake.write(*entries, update_aws_glue_catalog=False, destination_prefix=None)

    def rows(self, name: str) -> set[str]:
        return {of for (of,) in self.lake.rows("SELECT of FROM t", f"s/{name}")}

    def forget_origin(self, table_id: str) -> None:
        """The state as an earlier release left it."""
        key = ControlKeys(PREFIX, "flights").state(table_id)
        content = json.loads(self.lake.aws.objects(BUCKET)[key])
        del content["origin"]
        self.lake.aws.client("s3").put_object(Bucket=BUCKET, Key=key, Body=json.dumps(content).encode())


@pytest.fixture
def names(lake) -> Names:
    return Names(lake)


COLLISION = "NAME_COLLISION"


def test_a_table_that_comes_before_another(names):
    assert names.load("a b") == [None]
    assert names.load("a-b", "a b") == [COLLISION, COLLISION]
    assert names.load("a b", "a-b") == [None, None]
    assert names.load("a-b", "a b") == [COLLISION, COLLISION]
    assert names.load("a-b", "a b", a__b="a_b", a_b="a_b_1") == [None, None]
    assert (names.rows("a_b"), names.rows("a_b_1")) == ({"a b"}, {"a-b"})


def test_a_table_whose_namesake_is_taken_out(names):
    assert names.load("a b", "a-b") == [None, None]
    assert names.load("a-b") == [COLLISION]
    assert names.load("a-b", a_b="a_b_1") == [None]


def test_a_table_whose_origin_is_not_known(names):
    names.load("a b")
    names.forget_origin("s.a_b")
    assert names.load("a b") == [None]
    assert names.load("a-b", "a b") == [COLLISION, COLLISION]
    assert names.load("a-b", "a b", a__b="a_b") == [None, None]
    assert names.load("a-b", "a b", a__b="a_b") == [None, None]
    assert (names.rows("a_b"), names.rows("a_b_1")) == ({"a b"}, {"a-b"})


def test_plan_says_so(names):
    names.load("a b")
    names.write(("a-b", "a b"), {})
    spec = names.lake.spec
    controls = {table.id: names.lake.control(table.id) for table in spec.tables}
    planned = plan(spec, job_id="p", clients=Clients(spec.access), spark=lambda: names.lake._spark, controls=controls)
    assert [table.error for table in planned] == [
        "NAME_COLLISION: table 'a-b' would be written as 's.a_b', which has the rows of 'a b'. Say in the entry of "
        "each of these tables what it is called, such as written_as: a_b; or give the table another name.",
        "NAME_COLLISION: table 'a b' would be written as 's.a_b_1', and its rows are in 's.a_b'. Say in the entry of "
        "each of these tables what it is called, such as written_as: a_b_1; or give the table another name.",
    ]
