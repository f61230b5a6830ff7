"""``verify`` of a load that set rows aside: the objects that hold them, there and whole."""

import gzip

import pytest

from lakewriter.aws import Clients
from lakewriter.commit.conditional_writes import S3Store
from lakewriter.commit.control import open_control
from lakewriter.operate.row_counts import Counting
from lakewriter.operate.verification import verify
from tests.load.lakes import BUCKET, table

pytestmark = pytest.mark.spark


def delete(aws, key):
    aws.client("s3").delete_object(Bucket=BUCKET, Key=key)


def overwrite(content):
    return lambda aws, key: aws.client("s3").put_object(Bucket=BUCKET, Key=key, Body=content)


CASES = [
    # what was done to the object, what verify tells, and what it tells with --rows
    ("nothing", lambda aws, key: None, [], []),
    ("deleted", delete, ["bad_rows_gone STAGED_LOST"], ["bad_rows_gone STAGED_LOST"]),
    ("truncated", overwrite(gzip.compress(b"{}\n")[:-9]), [], ["bad_rows_changed KEY_EXISTS"]),
    ("no gzip", overwrite(b"{}\n"), [], ["bad_rows_changed KEY_EXISTS"]),
    ("no JSON", overwrite(gzip.compress(b"{\n")), [], ["bad_rows_changed KEY_EXISTS"]),
    ("two rows", overwrite(gzip.compress(b"{}\n{}\n")), [], ["bad_rows_changed KEY_EXISTS"]),
]


def test_objects_with_bad_rows(lake):
    rule = {"action": "set_aside", "at_most": 0.5}
    source = lake.csv("cities.csv", "id,name\n1,Ann\n2\n3,Cid\n")
    lake.write(table("cities", source, primary_key=["id"], on_bad_row=rule))
    [result] = lake.load("abc123").tables
    (key,) = result.set_aside.keys
    content = lake.aws.objects(BUCKET)[key]
    clients = Clients(lake.spec.access)
    controls = {each.id: open_control(lake.spec, each, S3Store(clients)) for each in lake.spec.tables}
    for name, harm, listed, read in CASES:
        overwrite(content)(lake.aws, key)
        harm(lake.aws, key)
        for counting, expected in ((None, listed), (Counting.of(lake.spec), read)):
            found = verify(controls, "abc123", clients, counting)
            assert [f"{each.kind} {each.code}" for each in found.differences] == expected, name
            assert found.exit_code == bool(expected), name
