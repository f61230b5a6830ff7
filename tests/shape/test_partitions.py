"""Which partition a row is in; the expectations are Iceberg's own, and Iceberg says which hash each value has."""

import pickle
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from lakewriter.dialects.common.tables import parse_partition_field
from lakewriter.errors import SpecInvalidError, ValueUnrepresentableError
from lakewriter.shape.partitions import Transforms

NTZ, UTC_US = pa.timestamp("us"), pa.timestamp("us", "UTC")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
BEFORE = datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
LATER = datetime(2017, 11, 16, 22, 31, 8, tzinfo=UTC)

VALUES = [
    # transform, type, value, its partition in JSON, its directory
    ("c", pa.int64(), -5, -5, "c=-5"),
    ("c", pa.bool_(), True, True, "c=true"),
    ("c", pa.string(), "a/b c=ä", "a/b c=ä", "c=a%2Fb+c%3D%C3%A4"),
    ("c", pa.string(), "", "", "c="),
    ("c", pa.string(), None, None, "c=null"),
    ("c", pa.string(), "x" * 2000, "x" * 2000, f"c={'x' * 100}"),
    # As java.net.URLEncoder has them; what is cut short ends with no half of an escape.
    ("c", pa.string(), "a~b*c.d-e_f", "a~b*c.d-e_f", "c=a%7Eb*c.d-e_f"),
    ("c", pa.string(), "x" * 98 + "/", "x" * 98 + "/", f"c={'x' * 98}"),
    ("c", pa.string(), "x" * 99 + "/", "x" * 99 + "/", f"c={'x' * 99}"),
    ("c", pa.date32(), date(1969, 12, 31), "1969-12-31", "c=1969-12-31"),
    ("c", pa.decimal128(5, 2), Decimal("-1.50"), "-1.50", "c=-1.50"),
    ("c", pa.binary(), b"\xab", "ab", "c=qw%3D%3D"),
    ("c", UTC_US, BEFORE, "1969-12-31T23:59:59.999999+00:00", "c=1969-12-31T23%3A59%3A59.999999%2B00%3A00"),
    ("year(c)", UTC_US, BEFORE, -1, "c_year=1969"),
    ("year(c)", pa.date32(), date(1969, 1, 1), -1, "c_year=1969"),
    ("month(c)", UTC_US, BEFORE, -1, "c_month=1969-12"),
    ("month(c)", pa.date32(), date(2017, 11, 16), 574, "c_month=2017-11"),
    ("day(c)", UTC_US, BEFORE, "1969-12-31", "c_day=1969-12-31"),
    ("day(c)", UTC_US, EPOCH, "1970-01-01", "c_day=1970-01-01"),
    ("day(c)", NTZ, datetime(1969, 12, 30, 12), "1969-12-30", "c_day=1969-12-30"),
    ("day(c)", pa.date32(), date(1969, 12, 31), "1969-12-31", "c_day=1969-12-31"),
    ("hour(c)", UTC_US, BEFORE, -1, "c_hour=1969-12-31-23"),
    ("hour(c)", NTZ, datetime(1970, 1, 1, 1, 59), 1, "c_hour=1970-01-01-01"),
    ("truncate(10, c)", pa.int32(), -1, -10, "c_trunc=-10"),
    ("truncate(10, c)", pa.int64(), 19, 10, "c_trunc=10"),
    ("truncate(50, c)", pa.decimal128(9, 2), Decimal("10.65"), "10.50", "c_trunc=10.50"),
    ("truncate(10, c)", pa.decimal128(9, 2), Decimal("-0.05"), "-0.10", "c_trunc=-0.10"),
    ("truncate(10, c)", pa.decimal128(38, 0), Decimal(-(10**37) - 1), f"-{10**37 + 10}", f"c_trunc=-{10**37 + 10}"),
    ("truncate(3, c)", pa.string(), "iceberg", "ice", "c_trunc=ice"),
    ("truncate(2, c)", pa.string(), "\U0001f9caä!", "\U0001f9caä", "c_trunc=%F0%9F%A7%8A%C3%A4"),
    ("truncate(1, c)", pa.binary(), b"\x01\x02", "01", "c_trunc=AQ%3D%3D"),
    # Hashes of https://iceberg.apache.org/spec/#appendix-b-32-bit-hash-requirements, without their sign, modulo 100.
    ("bucket(100, c)", pa.int32(), 34, (2017239379 & 0x7FFFFFFF) % 100, "c_bucket=79"),
    ("bucket(100, c)", pa.int64(), 34, (2017239379 & 0x7FFFFFFF) % 100, "c_bucket=79"),
    ("bucket(100, c)", pa.decimal128(9, 2), Decimal("14.20"), (-500754589 & 0x7FFFFFFF) % 100, "c_bucket=59"),
    ("bucket(100, c)", pa.date32(), date(2017, 11, 16), (-653330422 & 0x7FFFFFFF) % 100, "c_bucket=26"),
    ("bucket(100, c)", NTZ, LATER.replace(tzinfo=None), (-2047944441 & 0x7FFFFFFF) % 100, "c_bucket=7"),
    ("bucket(100, c)", UTC_US, LATER, (-2047944441 & 0x7FFFFFFF) % 100, "c_bucket=7"),
    ("bucket(100, c)", pa.string(), "iceberg", (1210000089 & 0x7FFFFFFF) % 100, "c_bucket=89"),
    ("bucket(100, c)", pa.binary(), bytes(range(4)), (-188683207 & 0x7FFFFFFF) % 100, "c_bucket=41"),
    ("bucket(100, c)", pa.string(), None, None, "c_bucket=null"),
]


def batch(**columns):
    return pa.record_batch(columns)


def transforms(fields, schema):
    """As a task gets them."""
    return pickle.loads(pickle.dumps(Transforms.of([parse_partition_field(field) for field in fields], schema)))


@pytest.mark.parametrize(("field", "kind", "value", "partition", "directory"), VALUES)
def test_partition_of_a_value(field, kind, value, partition, directory):
    rows = batch(c=pa.array([value, value], kind))
    own = transforms([field], rows.schema)
    assert [(found, run.num_rows) for found, run in own.split_by_partition(rows)] == [((partition,), 2)]
    assert own.name_directory((partition,)) == directory


def test_runs_of_two_fields():
    days = pa.array([0, 0, 0, 86_400_000_000, None, None], UTC_US)
    rows = batch(at=days, kind=pa.array(["a", "b", "b", "b", "b", None]), n=pa.array(range(6)))
    own = transforms(["day(at)", "kind"], rows.schema)
    assert [(found, run["n"].to_pylist()) for found, run in own.split_by_partition(rows)] == [
        (("1970-01-01", "a"), [0]),
        (("1970-01-01", "b"), [1, 2]),
        (("1970-01-02", "b"), [3]),
        ((None, "b"), [4]),
        ((None, None), [5]),
    ]
    assert own.name_directory(("1970-01-01", None)) == "at_day=1970-01-01/kind=null"


def test_keys_tell_partitions_apart():
    texts = pa.array(["a,b", "a", '"', None, "null"])
    own = transforms(["c", "d"], pa.schema([("c", pa.string()), ("d", pa.string())]))
    keys = own.write_keys([texts, pa.array(["c", "b,c", "", "x", "x"])])
    assert keys.to_pylist() == ['"a,b","c"', '"a","b,c"', '"\\"",""', 'null,"x"', '"null","x"']


def test_no_rows():
    rows = batch(c=pa.array([], pa.int64()))
    assert list(transforms(["c"], rows.schema).split_by_partition(rows)) == []


REFUSED = [
    # transform, type that it does not take
    ("hour(c)", pa.date32()),
    ("day(c)", pa.string()),
    ("truncate(4, c)", pa.date32()),
    ("bucket(4, c)", pa.bool_()),
    ("bucket(4, c)", pa.float64()),
    ("c", pa.float32()),
    ("c", pa.list_(pa.int64())),
]


@pytest.mark.parametrize(("field", "kind"), REFUSED)
def test_type_without_the_transform(field, kind):
    with pytest.raises(SpecInvalidError, match=r"partition_by .*c.*: column 'c' is written as"):
        transforms([field], pa.schema([("c", kind)]))


def test_folder_among_control_objects():
    """docs/guide-lakewriter.md, "Names in keys"."""
    schema = pa.schema([("_lakewriter_at", pa.date32())])
    with pytest.raises(
        SpecInvalidError, match=r"folders would be named '_lakewriter_at_day=': the name has the segment"
    ):
        transforms(["day(_lakewriter_at)"], schema)


BEYOND = [
    # transform, type, days or microseconds since 1970 or the number, how the value is shown
    ("c", pa.date32(), 5_000_000, "15659-07-15"),
    ("year(c)", pa.date32(), 5_000_000, "15659-07-15"),
    ("day(c)", UTC_US, 300_000_000_000_000_000, "11476-08-15 05:00:00"),
    ("hour(c)", UTC_US, 300_000_000_000_000_000, "11476-08-15 05:00:00"),
    ("month(c)", pa.date32(), -719_163, "0000-12-31"),
    # Their multiples of ten do not fit.
    ("truncate(10, c)", pa.int32(), -(2**31), str(-(2**31))),
    ("truncate(10, c)", pa.int64(), -(2**63), str(-(2**63))),
]


@pytest.mark.parametrize(("field", "kind", "number", "shown"), BEYOND)
def test_value_that_no_partition_has(field, kind, number, shown):
    plain = pa.int32() if kind in {pa.date32(), pa.int32()} else pa.int64()
    rows = batch(c=pa.array([number], plain).view(kind))
    with pytest.raises(ValueUnrepresentableError, match=f"{shown}.* in column 'c' has no partition"):
        list(transforms([field], rows.schema).split_by_partition(rows))
