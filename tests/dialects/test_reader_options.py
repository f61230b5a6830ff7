import pytest

from lakewriter.dialects.common.read_keys import find_unknown_option, note_unknown_options
from lakewriter.dialects.lake_yaml import load_spec
from tests.dialects import files

# Of the drivers of PostgreSQL, MySQL, SQL Server and Oracle, and Derby.
PROPERTIES = """
ssl sslmode sslrootcert currentSchema loginTimeout connectTimeout socketTimeout defaultRowFetchSize
prepareThreshold ApplicationName targetServerType readOnly options preferQueryMode cancelSignalTimeout
connectionTimeZone forceConnectionTimeZoneToSession useSSL sslMode password2 allowPublicKeyRetrieval
useCursorFetch databaseName encrypt trustServerCertificate hostNameInCertificate integratedSecurity
lockTimeout cancelQueryTimeout oracle.jdbc.timezoneAsRegion defaultRowPrefetch internal_logon serverName
portNumber domain connectionAttributes create territory
""".split()  # noqa: SIM905

UNKNOWN = [
    # format, option, what it is taken for: Spark's readers ignore the case of options
    ("csv", "delimeter", "delimiter"),
    ("csv", "heder", "header"),
    ("json", "multiline", None),
    ("json", "allowSingleQuote", "allowSingleQuotes"),
    ("parquet", "mergeShema", "mergeSchema"),
    ("parquet", "recursive", "recursiveFileLookup"),
    ("text", "wholeText", None),
    ("avro", "avroShema", "avroSchema"),
    ("xml", "rowtags", "rowTag"),
    ("csv", "fs.s3a.endpoint", None),
    ("kafka", "subscrib", "subscribe"),
    ("kafka", "startingOffset", "startingOffsets"),
    ("kafka", "INCLUDEHEADERS", None),
    ("kafka", "kafka.security.protocol", None),
    ("jdbc", "fetchSize", None),
    ("jdbc", "fetchsise", "fetchsize"),
    ("jdbc", "dbtabel", "dbtable"),
    ("jdbc", "partitonColumn", "partitionColumn"),
    ("jdbc", "sfPassword", None),
    *[("jdbc", name, None) for name in PROPERTIES],
]


@pytest.mark.parametrize(("form", "option", "taken_for"), UNKNOWN)
def test_unknown_option(form, option, taken_for):
    expected = taken_for and f"{option!r} is no option of {form}; did you mean {taken_for!r}?"
    assert find_unknown_option(form, [option]) == expected


NOT_ALIKE = [
    ("parquet", "header", "'header' is no option of parquet; it is one of csv; leave it out."),
    ("orc", "multiLine", "'multiLine' is no option of orc; it is one of csv and json and xml; leave it out."),
    ("json", "qqq", "'qqq' is no option of json; leave it out."),
    ("kafka", "qqq", "'qqq' is no option of kafka; leave it out."),
]


@pytest.mark.parametrize(("form", "option", "expected"), NOT_ALIKE)
def test_option_like_none_of_the_format(form, option, expected):
    assert find_unknown_option(form, [option]) == expected


PASSED_ON = [
    (
        "csv",
        {"header": "true", "fs.s3a.endpoint": "x"},
        "'fs.s3a.endpoint': not known here, handed to Hadoop as given.",
    ),
    # the options of docs/quickstarts/kafka.md, and properties of the consumer
    ("kafka", {"kafka.bootstrap.servers": "b:9092", "subscribe": "t", "startingOffsets": "earliest"}, None),
    ("kafka", {"kafka.security.protocol": "SSL", "Kafka.Group.Id": "g", "fetchOffset.numRetries": "3"}, None),
    ("iceberg", {"a": "b"}, "'a': not known here, handed to the reader of iceberg as given."),
    (
        "jdbc",
        {"url": "u", "user": "u", "sslmode": "x"},
        "'sslmode': not known to Spark, handed to the database's driver as properties of the connection.",
    ),
    ("csv", {"HEADER": "true"}, None),
    ("kafka", {}, None),
]


@pytest.mark.parametrize(("form", "options", "note"), PASSED_ON)
def test_passed_on(form, options, note):
    assert note_unknown_options(form, options) == note


def test_note_of_a_pipeline(tmp_path):
    read = {"sql": "SELECT * FROM v", "views": {"v": {"format": "delta", "options": {"versionAsOf": 3}}}}
    spec = load_spec(files.lake(tmp_path, tables=[{"table": "t", "schema": "s", "read": read}]))
    assert [warning for warning in spec.warnings if "options" in warning] == [
        "table 's.t': read.options 'versionAsOf': not known here, handed to the reader of delta as given."
    ]


ZERO_DATES = (
    "table 's.t': read.options 'zeroDateTimeBehavior' changes nothing: dates are read as the server writes them, and a "
    "row with a zero date does not fit. Keep such rows apart by on_bad_row: {action: quarantine}, or give a query with "
    "NULLIF(column, 0)."
)
OF_MYSQL = [
    # the options beside the table; whether a note says that Connector/J's is not asked
    ({"url": "jdbc:mysql://h/d"}, False),
    ({"url": "jdbc:mysql://h/d?useSSL=true&zeroDateTimeBehavior=CONVERT_TO_NULL"}, True),
    ({"url": "jdbc:mysql://h/d", "ZeroDateTimeBehavior": "ROUND"}, True),
]


@pytest.mark.parametrize(("options", "is_noted"), OF_MYSQL)
def test_note_on_zero_dates(tmp_path, options, is_noted):
    """https://dev.mysql.com/doc/connector-j/en/connector-j-connp-props-datetime-types-processing.html"""
    read = {"format": "jdbc", "options": {"dbtable": "d.t", **options}}
    spec = load_spec(files.lake(tmp_path, tables=[{"table": "t", "schema": "s", "read": read}]))
    assert (ZERO_DATES in spec.warnings) is is_noted
