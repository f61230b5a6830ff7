"""Partitions of other values at the files of a load's: which are told, and how they are listed."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from lakewriter.aws import Clients
from lakewriter.operate.verification import TablePartitions
from lakewriter.records.changes import Intent
from tests.commit.test_hostile import ACTION


class Glue:
    """Two partitions a page."""

    def __init__(self, *partitions: tuple[str, str]) -> None:
        self.partitions, self.asked = partitions, 0

    def get_partitions(self, *, NextToken: str = "0", **where: Any) -> Any:  # noqa: N803
        assert where == {"DatabaseName": "d", "TableName": "t", "ExcludeColumnSchema": True}
        self.asked += 1
        at = int(NextToken)
        page = [
            {"Values": [value], "StorageDescriptor": {"Location": location} if location else {}}
            for value, location in self.partitions[at : at + 2]
        ]
        more = {"NextToken": str(at + 2)} if at + 2 < len(self.partitions) else {}
        return {"Partitions": page} | more


OTHERS = [
    # where a partition of another value lies, whether readers of it find the load's files, which are in s3://b/d/t/1
    ("s3://b/d/t/1", True),
    ("s3://b/d/t/1/", True),
    ("s3://b/d/t", True),
    ("s3://b/d/", True),
    ("s3://b/d/t/11", False),
    ("s3://b/d/t/1/x", False),
    ("s3://b/d/t/2", False),
    ("s3://other/d/t/1", False),
    ("", False),
]


@pytest.mark.parametrize(("location", "told"), OTHERS)
def test_partition_of_another_value(location, told):
    glue = Glue(("1", "s3://b/d/t/1"), ("2", "s3://b/d/t/2"), ("z", location))
    partitions = TablePartitions(cast(Clients, SimpleNamespace(glue=glue, access=None)))
    intent = cast(Intent, SimpleNamespace(catalog=ACTION, table_id="d.t"))
    for _ in range(2):
        found, notes = partitions.compare(intent)
        assert ([each.kind for each in found], notes) == (["partition_foreign"] if told else [], [])
    assert all(f"partition 'z' lies at {location!r}, with the files of partition '1'" in each.message for each in found)
    # Two pages, asked for once.
    assert glue.asked == 2
