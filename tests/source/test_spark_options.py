"""The options known here are those of this Spark."""

import pytest

from lakewriter.dialects.common.read_keys import list_known_options
from lakewriter.spec.source_formats import FORMATS

pytestmark = pytest.mark.spark

REGISTERED = {
    "csv": "catalyst.csv.CSVOptions",
    "json": "catalyst.json.JSONOptions",
    "xml": "catalyst.xml.XmlOptions",
    "parquet": "execution.datasources.parquet.ParquetOptions",
    "orc": "execution.datasources.orc.OrcOptions",
    "text": "execution.datasources.text.TextOptions",
    "avro": "avro.AvroOptions",
}


@pytest.mark.parametrize("form", REGISTERED)
def test_options_of_files(spark, form):
    kind = spark._jvm
    for name in ("org", "apache", "spark", "sql", *REGISTERED[form].split(".")):
        kind = getattr(kind, name)
    # Names with a dot are Hadoop's.
    assert sorted(FORMATS[form].options or ()) == [name for name in _sorted(kind.getAllOptions()) if "." not in name]


def test_options_of_jdbc(spark):
    options = spark._jvm.org.apache.spark.sql.execution.datasources.jdbc.JDBCOptions
    kind = spark._jvm.java.lang.Class.forName(f"{options._fqn}$")
    getters = [method.getName() for method in kind.getMethods() if method.getName().startswith("JDBC_")]
    assert sorted(FORMATS["jdbc"].options or ()) == sorted(getattr(options, getter)() for getter in getters)


def test_options_of_streams(spark):
    """Each is a value of the class; its own ``maxFileAgeMs`` is the option maxFileAge in milliseconds."""
    jvm = spark._jvm
    kind = jvm.java.lang.Class.forName("org.apache.spark.sql.execution.streaming.runtime.FileStreamOptions")
    names = {field.getName().removesuffix("Ms") for field in kind.getDeclaredFields()} - {"parameters"}
    options = {name for name in names if not name.startswith(("org$", "optionMap", "checkDisallowed"))}
    assert options <= (list_known_options("csv") or set())


def _sorted(names):
    iterator, found = names.iterator(), []
    while iterator.hasNext():
        found.append(iterator.next())
    return sorted(found)
