"""Every type of PostgreSQL and MariaDB with extreme values, as the server prints them, read in several time zones."""

import json
import os
import subprocess
import sys
from decimal import Decimal

import pytest

from tests.interop import mariadb, postgresql
from tests.interop.maven import jars
from tests.load.lakes import ROOT

pytestmark = pytest.mark.timeout(900)

ZONES = ["UTC", "America/New_York", "Asia/Kolkata"]


def make_environment(paths, zone):
    """The variables of a process whose Java has jars, in a time zone."""
    return os.environ | {
        "PYTHONPATH": f"{ROOT / 'job'}{os.pathsep}{ROOT}",
        "PYSPARK_SUBMIT_ARGS": f"--jars {','.join(map(str, paths))} pyspark-shell",
        "TZ": zone,
    }


def read_tables(wanted, package, *, zone="UTC"):
    """The tables as tasks read them, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.interop.read_databases"],
        input=json.dumps(wanted),
        env=make_environment(jars([package]), zone),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


SAME = "as the server prints it"
TYPES_MADE = (
    "CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE DOMAIN positive AS int CHECK (VALUE > 0);"
    "CREATE TYPE pair AS (a int, b text);\n"
)
POSTGRESQL = [
    # type; the type it is read as; (literal, what is read: SAME, a text, or a part of the message that refuses it)...
    ("smallint", "int16", [("-32768", SAME), ("32767", SAME)]),
    ("integer", "int32", [("-2147483648", SAME)]),
    ("bigint", "int64", [("-9223372036854775808", SAME), ("9223372036854775807", SAME)]),
    ("numeric(10, 2)", "decimal128(10, 2)", [("-12345678.90", SAME), ("'NaN'", "!'NaN' in column 'c'")]),
    ("numeric(5, -2)", "decimal128(7, 0)", [("1234567", "1234600")]),
    ("numeric(3, 5)", "decimal128(5, 5)", [("0.00123", SAME)]),
    (
        "numeric",
        "decimal128(38, 18)",
        [
            ("99999999999999999999.123456789012345678", SAME),
            ("0.1234567890123456789", "!it has 19 decimal places"),
            ("1e20", "!it has 21 digits before the point"),
            ("'-Infinity'", "!'-Infinity' in column 'c'"),
        ],
    ),
    ("numeric(38, 0)", "decimal128(38, 0)", [("99999999999999999999999999999999999999", SAME)]),
    (
        "numeric(50, 40)",
        "decimal128(38, 28)",
        [
            ("1234567890.5", "1234567890.5000000000000000000000000000"),
            ("0.12345678901234567890123456789", "!29 decimal"),
        ],
    ),
    (
        "real",
        "float",
        [
            ("1.17549435e-38", "1.1754943508222875e-38"),
            ("3.4028235e38", "3.4028234663852886e+38"),
            ("0.1", "0.10000000149011612"),
            ("'NaN'", "nan"),
        ],
    ),
    (
        "double precision",
        "double",
        [("0.1", SAME), ("5e-324", SAME), ("1.7976931348623157e308", SAME), ("'-0'", "-0.0")],
    ),
    ("money", "string", [("'-92233720368547758.08'", SAME)]),
    ("boolean", "bool", [("true", "true"), ("false", "false")]),
    ("char(5)", "string", [("'ab'", "ab   ")]),
    ("varchar(5)", "string", [("'a b '", SAME)]),
    ("text", "string", [("E'žluť € \\U0001F600\\ttab'", SAME), ("''", SAME)]),
    ('"char"', "string", [("'x'", SAME)]),
    ("name", "string", [("'n'", SAME)]),
    ("bytea", "binary", [("'\\x00deadbeef'", "00deadbeef")]),
    (
        "date",
        "date32[day]",
        [
            ("'0001-01-01'", SAME),
            ("'1582-10-10'", SAME),
            ("'9999-12-31'", SAME),
            ("'0044-03-15 BC'", "!'0044-03-15 BC' in column 'c' does not convert to date"),
            ("'infinity'", "!'infinity' in column 'c'"),
            ("'10000-01-01'", "!'10000-01-01' in column 'c'"),
        ],
    ),
    (
        "timestamp",
        "timestamp[us, tz=UTC]",
        [
            ("'1582-10-10 12:00:00.000001'", SAME),
            ("'2024-03-10 02:30:00'", SAME),
            ("'9999-12-31 23:59:59.999999'", SAME),
            ("'-infinity'", "!'-infinity' in column 'c'"),
            ("'0044-03-15 BC'", "!'0044-03-15 00:00:00 BC' in column 'c'"),
        ],
    ),
    (
        "timestamptz",
        "timestamp[us, tz=UTC]",
        [("'1850-01-01 00:00:00+00'", "1850-01-01 00:00:00"), ("'2024-11-03 06:30+00'", "2024-11-03 06:30:00")],
    ),
    (
        "time",
        "timestamp[us, tz=UTC]",
        [("'12:34:56.789012'", "1970-01-01 12:34:56.789012"), ("'24:00:00'", "!'1970-01-01 24:00:00' in column 'c'")],
    ),
    ("timetz", "string", [("'12:34:56.5+05:30'", SAME), ("'23:30:00-08'", SAME), ("'24:00:00+00'", SAME)]),
    ("interval", "string", [("'-1 year 2 days -03:04:05.5'", SAME)]),
    ("json", "string", [("'{\"a\":  [1, 2]}'", SAME)]),
    ("jsonb", "string", [("'{\"a\": [1, 1e400]}'", SAME)]),
    ("xml", "string", [("'<a/>'", SAME)]),
    ("uuid", "string", [("'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", SAME)]),
    ("inet", "string", [("'192.168.0.1/24'", SAME)]),
    ("cidr", "string", [("'10.0.0.0/8'", SAME)]),
    ("macaddr", "string", [("'08:00:2b:01:02:03'", SAME)]),
    ("macaddr8", "string", [("'08:00:2b:01:02:03:04:05'", SAME)]),
    ("bit(1)", "bool", [("B'1'", "true"), ("B'0'", "false")]),
    ("bit(3)", "string", [("B'101'", SAME)]),
    ("varbit(5)", "string", [("B'1011'", SAME)]),
    ("point", "string", [("'(1,2.5)'", SAME)]),
    ("line", "string", [("'{1,2,3}'", SAME)]),
    ("lseg", "string", [("'((1,2),(3,4))'", SAME)]),
    ("box", "string", [("'((1,2),(3,4))'", SAME)]),
    ("path", "string", [("'((1,2),(3,4))'", SAME)]),
    ("polygon", "string", [("'((1,2),(3,4))'", SAME)]),
    ("circle", "string", [("'<(1,2),3>'", SAME)]),
    ("tsvector", "string", [("'a b'", SAME)]),
    ("tsquery", "string", [("'a & b'", SAME)]),
    ("int4range", "string", [("'[1,5)'", SAME), ("'empty'", SAME)]),
    ("numrange", "string", [("'(,1.50]'", SAME)]),
    ("tstzrange", "string", [("'[2024-01-01 00:00+00,)'", '["2024-01-01 00:00:00+00",)')]),
    ("datemultirange", "string", [("'{[2024-01-01,2024-01-02)}'", SAME)]),
    ("integer[]", "list<element: int32>", [("'{1,NULL,3}'", '["1", null, "3"]'), ("'{}'", "[]")]),
    ("integer[][]", "list<element: list<element: int32>>", [("'{{1,2},{3,4}}'", '[["1", "2"], ["3", "4"]]')]),
    ("numeric(9, 2)[]", "list<element: decimal128(9, 2)>", [("'{1.50}'", '["1.50"]'), ("'{NaN}'", "!NaN")]),
    ("boolean[]", "list<element: bool>", [("'{t,f}'", "[true, false]")]),
    ("date[]", "list<element: date32[day]>", [("'{1582-10-14}'", '["1582-10-14"]'), ("'{infinity}'", "!infinity")]),
    (
        "timestamptz[]",
        "list<element: timestamp[us, tz=UTC]>",
        [("'{1850-01-01 00:00+00}'", '["1850-01-01 00:00:00+00:00"]')],
    ),
    ("text[]", "list<element: string>", [("ARRAY['a,\"b', E'\\\\', NULL]", '["a,\\"b", "\\\\", null]')]),
    ("char(3)[]", "list<element: string>", [("'{a}'", '["a  "]')]),
    ("time[]", "list<element: string>", [("'{24:00:00}'", '["24:00:00"]')]),
    ("bytea[]", "list<element: binary>", [("ARRAY['\\x00ff'::bytea]", '["00ff"]')]),
    ("mood[]", "list<element: string>", [("'{sad}'", '["sad"]')]),
    ("pg_lsn", "string", [("'16/B374D848'", SAME)]),
    ("oid", "decimal128(20, 0)", [("4294967295", SAME)]),
    ("regclass", "string", [("'pg_class'", SAME)]),
    ("jsonpath", "string", [("'$.a'", '$."a"')]),
    ("mood", "string", [("'sad'", SAME)]),
    ("positive", "int32", [("5", SAME)]),
    ("pair", "string", [("'(1,\"a b\")'", SAME)]),
]
MARIADB = [
    ("tinyint", "int8", [("-128", SAME), ("127", SAME)]),
    ("tinyint unsigned", "int16", [("255", SAME)]),
    ("tinyint(1)", "bool", [("1", "true"), ("0", "false"), ("2", "!'2' in column 'c'"), ("-1", "!'-1' in column 'c'")]),
    ("boolean", "bool", [("true", "true")]),
    ("smallint", "int16", [("-32768", SAME)]),
    ("smallint unsigned", "int32", [("65535", SAME)]),
    ("mediumint", "int32", [("-8388608", SAME)]),
    ("mediumint unsigned", "int32", [("16777215", SAME)]),
    ("int", "int32", [("-2147483648", SAME)]),
    ("int unsigned", "int64", [("4294967295", SAME)]),
    ("int(6) unsigned zerofill", "int64", [("42", "42")]),
    ("bigint", "int64", [("-9223372036854775808", SAME)]),
    ("bigint unsigned", "decimal128(20, 0)", [("18446744073709551615", SAME)]),
    ("bit(1)", "bool", [("b'1'", "true")]),
    ("bit(5)", "int64", [("b'10101'", "21")]),
    ("bit(33)", "int64", [("0x180000001", "6442450945")]),
    ("bit(64)", "decimal128(20, 0)", [("0xFFFFFFFFFFFFFFFF", "18446744073709551615")]),
    ("decimal(10, 2)", "decimal128(10, 2)", [("-12345678.90", SAME)]),
    ("decimal(10, 2) unsigned", "decimal128(10, 2)", [("99999999.99", SAME)]),
    ("decimal(38, 38)", "decimal128(38, 38)", [("0." + "1" * 38, SAME)]),
    (
        "decimal(65, 30)",
        "decimal128(38, 3)",
        [
            ("99999999999999999999999999999999999.125", "99999999999999999999999999999999999.125"),
            ("0.1234", "!decimal places"),
        ],
    ),
    (
        "float",
        "float",
        [("0.1", "0.10000000149011612"), ("16777217", "16777216.0"), ("3.4028235e38", "3.4028234663852886e+38")],
    ),
    ("double", "double", [("0.1", SAME), ("1.7976931348623157e308", SAME)]),
    ("year", "int32", [("0", "0"), ("1901", SAME), ("2155", SAME)]),
    (
        "date",
        "date32[day]",
        [
            ("'0001-01-01'", SAME),
            ("'1582-10-10'", SAME),
            ("'0000-00-00'", "!'0000-00-00' in column 'c'"),
            ("'2024-02-00'", "!'2024-02-00'"),
        ],
    ),
    (
        "datetime",
        "timestamp[us, tz=UTC]",
        [("'1850-01-01 00:00:00'", SAME), ("'0000-00-00 00:00:00'", "!'0000-00-00 00:00:00' in column 'c'")],
    ),
    (
        "datetime(6)",
        "timestamp[us, tz=UTC]",
        [("'9999-12-31 23:59:59.999999'", SAME), ("'2024-03-10 02:30:00.000001'", SAME)],
    ),
    (
        "timestamp(6) null",
        "timestamp[us, tz=UTC]",
        [("'2024-11-03 15:30:00.5'", "2024-11-03 06:30:00.500000"), ("0", "!'0000-00-00 00:00:00.000000'")],
    ),
    (
        "time(6)",
        "timestamp[us, tz=UTC]",
        [
            ("'12:34:56.789012'", "1970-01-01 12:34:56.789012"),
            ("'-838:59:59'", "!'1970-01-01 -838:59:59.000000'"),
            ("'838:59:59'", "!838:59:59"),
        ],
    ),
    ("char(5)", "string", [("'ab'", SAME)]),
    ("varchar(20)", "string", [("'žluť € 😀 '", SAME), ("''", SAME)]),
    ("varchar(20) character set latin1", "string", [("'é'", SAME)]),
    ("varchar(20) collate utf8mb4_bin", "string", [("'A'", SAME)]),
    ("tinytext", "string", [("'t'", SAME)]),
    ("text", "string", [("'t'", SAME)]),
    ("mediumtext", "string", [("'t'", SAME)]),
    ("longtext", "string", [("'t'", SAME)]),
    ("enum('a', 'bb')", "string", [("'a'", SAME), ("0", "")]),
    ("set('x', 'yy')", "string", [("'x,yy'", SAME), ("''", "")]),
    ("json", "string", [("'{\"a\":  1}'", SAME)]),
    ("binary(4)", "binary", [("x'00ff'", "00ff0000")]),
    ("varbinary(10)", "binary", [("x'00ff'", "00ff")]),
    ("tinyblob", "binary", [("x'00ff'", "00ff")]),
    ("blob", "binary", [("x'00ff'", "00ff")]),
    ("mediumblob", "binary", [("x'00ff'", "00ff")]),
    ("longblob", "binary", [("x'00ff'", "00ff")]),
    (
        "point",
        "binary",
        [("ST_GeomFromText('POINT(1 2)', 4326)", "e61000000101000000000000000000f03f0000000000000040")],
    ),
    ("geometry", "binary", [("ST_GeomFromText('POINT(1 2)')", "000000000101000000000000000000f03f0000000000000040")]),
    ("uuid", "string", [("'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", SAME)]),
    ("inet6", "string", [("'::1'", SAME)]),
    ("inet4", "string", [("'10.0.0.1'", SAME)]),
]


def list_good(types):
    """The columns of one table, which has each value in a column of its own."""
    for place, (kind, read_as, literals) in enumerate(types):
        for number, (literal, expected) in enumerate(literals):
            if not expected.startswith("!"):
                yield f"c{place}_{number}", kind, literal, read_as, expected


def list_refused(types):
    """Tables of one value each, which ends their load with a message."""
    for place, (kind, _, literals) in enumerate(types):
        for number, (literal, expected) in enumerate(literals):
            if expected.startswith("!"):
                yield f"t{place}_{number}", kind, literal, expected[1:]


def write_tables(types):
    """The statements that make the tables."""
    good = list(list_good(types))
    columns = ", ".join(f"{name} {kind}{'' if ' null' in kind else ' null'}" for name, kind, *_ in good)
    yield f"CREATE TABLE good (n int, {columns});"
    yield f"INSERT INTO good VALUES (1, {', '.join(literal for _, _, literal, *_ in good)});"
    yield "INSERT INTO good (n) VALUES (2);"
    for name, kind, literal, _ in list_refused(types):
        yield f"CREATE TABLE {name} (c {kind}); INSERT INTO {name} VALUES ({literal});"


@pytest.fixture(scope="module")
def postgres():
    with postgresql.serving() as running:
        running.execute(TYPES_MADE + "\n".join(write_tables(POSTGRESQL)))
        yield running


@pytest.fixture(scope="module")
def maria():
    with mariadb.serving() as running:
        running.execute("\n".join(write_tables(MARIADB)))
        yield running


def compare(types, options, packages, zone, printed):
    """What differs from what the server has ``printed``, by type and literal; and what is not refused."""
    refused = list(list_refused(types))
    names = ["good", *(name for name, *_ in refused)]
    found = read_tables([{"options": {**options, "dbtable": name}} for name in names], packages, zone=zone)
    good, wrong = found[0], {}
    assert "error" not in good, good
    one, nulls = sorted(good["rows"], key=lambda row: row[0])
    assert set(nulls[1:]) == {None}
    for place, (_, kind, literal, read_as, expected) in enumerate(list_good(types), 1):
        shown = printed[place - 1] if expected == SAME else expected
        if good["kinds"][place] != read_as or not is_same(one[place], shown):
            wrong[kind, literal] = (good["kinds"][place], one[place], shown)
    for (_, kind, literal, message), result in zip(refused, found[1:], strict=True):
        if message not in result.get("error", ""):
            wrong[kind, literal] = result
    return wrong


def write_time(text):
    """The text without an offset, and zeros at the end of a second's fraction."""
    text = text.removesuffix("+00:00")
    return text.rstrip("0").rstrip(".") if ":" in text and "." in text else text


def is_same(value, shown):
    """Numbers may have other zeros and exponents, times those that Python writes."""
    if isinstance(value, list):
        items = shown if isinstance(shown, list) else json.loads(shown)
        return len(value) == len(items) and all(map(is_same, value, items))
    if isinstance(value, bool) or value is None:
        return str(value).lower() == str(shown).lower()
    if value == shown or write_time(value) == write_time(shown):
        return True
    try:
        return Decimal(value) == Decimal(shown) and (value[0] == "-") == (shown[0] == "-")
    except ArithmeticError:
        return False


@pytest.mark.exhaustive
@pytest.mark.parametrize("zone", ZONES)
def test_types_of_postgresql(postgres, zone):
    options = {"url": postgres.url, "user": postgresql.USER, "password": "-"}
    texts = ", ".join(f"{name}::text" for name, *_ in list_good(POSTGRESQL))
    printed = postgres.execute(f"SET TimeZone = 'UTC'; SELECT {texts} FROM good WHERE n = 1").split("|")
    assert compare(POSTGRESQL, options, postgresql.DRIVER, zone, printed) == {}


@pytest.mark.exhaustive
@pytest.mark.parametrize("scheme", ["mariadb", "mysql"])
@pytest.mark.parametrize("zone", ZONES)
def test_types_of_mariadb(maria, zone, scheme):
    options = {"url": maria.make_url(scheme), "user": mariadb.USER, "password": mariadb.PASSWORD}
    package = mariadb.DRIVER if scheme == "mariadb" else mariadb.CONNECTOR_J
    names = ", ".join(name if expected == SAME else "NULL" for name, *_, expected in list_good(MARIADB))
    printed = maria.execute(f"SET time_zone = '+00:00'; SELECT {names} FROM good WHERE n = 1", "--raw").split("\t")
    assert compare(MARIADB, options, package, zone, printed) == {}
