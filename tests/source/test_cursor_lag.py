import pyarrow as pa
import pytest

from lakewriter.errors import SpecInvalidError
from lakewriter.source.cursor_lag import check_lag
from tests.source.tables import table

UTC = pa.timestamp("us", "UTC")

GOES = [
    # cursor, lag, columns of the source
    ("at", "2 hours", {"at": UTC}),
    ("AT", "2 hours", {"id": pa.string(), "at": UTC}),
    ("at", "1 day", {"at": pa.date32()}),
    ("at", "1 day", {"at": pa.timestamp("us")}),
    ("n", "5", {"n": pa.int32()}),
    ("n", "0.5", {"n": pa.float64()}),
    ("n", "0.5", {"n": pa.decimal128(9, 2)}),
    ("N", "5", {"n": pa.string(), "N": pa.int8()}),
    ("at", None, {"at": pa.string()}),
    ("missing", "5", {"n": pa.int32()}),
]


@pytest.mark.parametrize(("cursor", "lag", "columns"), GOES)
def test_lag_that_goes_with_its_cursor(cursor, lag, columns):
    check_lag(table(format="csv", cursor=cursor, cursor_lag=lag), pa.schema(columns))


REFUSED = [
    # lag, type of the cursor, what the message has
    (
        "2 hours",
        pa.string(),
        "cursor_lag is '2 hours', which goes with a date or a timestamp; cursor 'c' has type 'string'",
    ),
    ("5", pa.string(), "which goes with a number; cursor 'c' has type 'string'. Declare"),
    ("2 hours", pa.int64(), "such as columns: {c: timestamp}, or leave out cursor_lag."),
    ("5", UTC, "such as columns: {c: bigint}"),
    ("5", pa.date32(), "has type 'date32[day]'"),
    ("1 day", pa.bool_(), "has type 'bool'"),
]


@pytest.mark.parametrize(("lag", "kind", "text"), REFUSED)
def test_lag_that_does_not(lag, kind, text):
    with pytest.raises(SpecInvalidError) as caught:
        check_lag(table(format="csv", cursor="c", cursor_lag=lag), pa.schema({"c": kind}))
    assert text in str(caught.value)
