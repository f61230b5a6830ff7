"""Spark reads every cursor's SQL as exactly the value and type it came from."""

import pyarrow as pa
import pytest

from lakewriter.receipt import Cursor
from lakewriter.shape.cursor import find_highest, write_spark_literal

pytestmark = pytest.mark.spark

# cursor, Spark's name of its type
LITERALS = [
    (Cursor("int64", "-9223372036854775808"), "bigint"),
    (Cursor("decimal128(38, 10)", "-0.0000000001"), "decimal(38,10)"),
    (Cursor("double", "5e-324"), "double"),
    (Cursor("double", "inf"), "double"),
    (Cursor("float", "3.4028235e+38"), "float"),
    (Cursor("date32[day]", "2024-01-15"), "date"),
    (Cursor("timestamp[us, tz=UTC]", "2024-01-15T10:30:00.000001Z"), "timestamp"),
    (Cursor("timestamp[us, tz=UTC]", "0001-01-01T00:00:00.000000Z"), "timestamp"),
    (Cursor("timestamp[us]", "2024-01-15T10:30:00.000001"), "timestamp_ntz"),
    (Cursor("string", 'it\'s \\ ${spark.app.id}\n"é" %_'), "string"),
]


@pytest.mark.parametrize(("cursor", "kind"), LITERALS)
def test_spark_literal_is_the_same_value_in_spark(spark, cursor, kind):
    frame = spark.range(1).selectExpr(f"{write_spark_literal(cursor)} AS value")
    column = pa.concat_arrays(frame.toArrow().column(0).chunks)
    assert frame.dtypes == [("value", kind)]
    highest = find_highest(column, "value", 1)
    assert highest is not None
    assert highest.without_shapes() == cursor
    assert frame.filter(f"value > {write_spark_literal(cursor)}").count() == 0
