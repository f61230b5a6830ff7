"""200 tables of random columns and values of PostgreSQL and MariaDB: what is read is what the server prints."""

import os
import random
import struct
from typing import Any

import pytest

from tests.interop import mariadb, postgresql
from tests.interop.test_database_types import MARIADB, POSTGRESQL, SAME, TYPES_MADE, is_same, read_tables

pytestmark = [pytest.mark.timeout(3600), pytest.mark.exhaustive]

SCHEMAS = int(os.environ.get("LAKEWRITER_SCHEMAS", "200"))
SEED = int(os.environ.get("LAKEWRITER_SCHEMAS_SEED", "44"))
BITS = {"smallint": 15, "integer": 31, "int": 31, "bigint": 63, "mediumint": 23, "tinyint": 7}
MOST_DIGITS = 38
# They end a column and a row, and stand for null, in what a server prints.
COLUMN_END, ROW_END, NULL = "\x02", "\x03", "\x04"


def draw_text(chance):
    letters = "aZž€😀 '\"`,;|%_-09\u00a0"
    return "".join(chance.choice(letters) for _ in range(chance.randint(0, 12)))


def quote(text):
    return "'" + text.replace("'", "''") + "'"


def draw_moment(chance, places):
    year = chance.choice([1, 1582, 1900, 1969, 1970, 2024, 9999, chance.randint(1, 9999)])
    day = f"{year:04}-{chance.randint(1, 12):02}-{chance.randint(1, 28):02}"
    clock = f"{chance.randint(0, 23):02}:{chance.randint(0, 59):02}:{chance.randint(0, 59):02}"
    fraction = f".{chance.randint(0, 10**places - 1):0{places}}" if places else ""
    return day, f"{day} {clock}{fraction}"


def draw_double(chance):
    """Draw any number of 64 bits, but no subnormal one."""
    exponent = chance.randint(1, 2046)
    return struct.unpack(
        ">d", struct.pack(">Q", chance.getrandbits(1) << 63 | exponent << 52 | chance.getrandbits(52))
    )[0]


def write_decimal(number, scale):
    digits = f"{abs(number):0{scale + 1}}"
    whole = f"{digits[:-scale]}.{digits[-scale:]}" if scale else digits
    return f"-{whole}" if number < 0 else whole


def choose_decimal(chance):
    """A type, of more digits than a file takes too; values have those that are kept."""
    precision = chance.randint(1, 65)
    scale = chance.randint(0, min(precision, 30))
    kept = max(scale - max(precision - MOST_DIGITS, 0), 0)
    top = 10 ** min(precision, MOST_DIGITS) - 1
    return f"decimal({precision}, {scale})", lambda: write_decimal(chance.randint(-top, top), kept)


def choose_column(chance, types):
    """A type, and a function that draws a literal and the text that it is read as: ``SAME`` as the server prints it."""
    known = {entry[0] for entry in types}
    places = chance.choice([0, 3, 6])
    moment = "timestamp" if "jsonb" in known else "datetime"
    drawn = {
        **{kind: draw_integer(chance, bits) for kind, bits in BITS.items() if kind in known},
        "varchar(40)": lambda: quote(draw_text(chance)),
        "double precision": lambda: quote(repr(draw_double(chance))),
        "date": lambda: quote(draw_moment(chance, 0)[0]),
        f"{moment}({places})": lambda: quote(draw_moment(chance, places)[1]),
        **dict([choose_decimal(chance)]),
    }
    if chance.random() < 0.6:
        kind, draw = chance.choice(list(drawn.items()))
        return kind, lambda: (draw(), SAME)
    fitting = {kind: [pair for pair in pairs if not pair[1].startswith("!")] for kind, _, pairs in types}
    kind, pairs = chance.choice([item for item in fitting.items() if item[1]])
    return kind, lambda: chance.choice(pairs)


def draw_integer(chance, bits):
    low, high = -(2**bits), 2**bits - 1
    return lambda: str(chance.choice([low, high, 0, chance.randint(low, high)]))


def draw_tables(types):
    """The tables: name, columns, statements, and for each row what its values are read as."""
    chance = random.Random(SEED)
    for number in range(SCHEMAS):
        columns = [choose_column(chance, types) for _ in range(chance.randint(1, 8))]
        names = [f"c{place}" for place in range(len(columns))]
        kinds = [kind if " null" in kind else f"{kind} null" for kind, _ in columns]
        declared = ", ".join(f"{name} {kind}" for name, kind in zip(names, kinds, strict=True))
        rows = [
            [("NULL", None) if chance.random() < 0.2 else draw() for _, draw in columns]
            for _ in range(chance.randint(0, 5))
        ]
        made = f"CREATE TABLE r{number} (n int, {declared});"
        for place, row in enumerate(rows):
            made += f" INSERT INTO r{number} VALUES ({place}, {', '.join(literal for literal, _ in row)});"
        yield f"r{number}", names, made, [[text for _, text in row] for row in rows]


def compare(types, options, package, printing):
    """What differs from what the server prints, by table, row and column."""
    tables = list(draw_tables(types))
    found = read_tables([{"options": {**options, "dbtable": name}} for name, *_ in tables], package)
    wrong: dict[Any, Any] = {}
    for (name, columns, made, expected), result in zip(tables, found, strict=True):
        rows = sorted(result.get("rows", []), key=lambda row: int(row[0]))
        if "error" in result or len(rows) != len(expected):
            wrong[name] = (made, result)
            continue
        # What the table of types has the text of, such as a geometry, is not printed.
        printed_columns = ["''" if all(row[n] != SAME for row in expected) else c for n, c in enumerate(columns)]
        for row, texts, shown in zip(rows, expected, printing(name, printed_columns), strict=True):
            for column, value, text, printed in zip(columns, row[1:], texts, shown, strict=True):
                wanted = printed if text == SAME else text
                if (value is None) != (wanted is None) or (value is not None and not is_same(value, wanted)):
                    wrong[name, row[0], column] = (made, value, wanted)
    return wrong


def parse(printed):
    """The rows of a query whose columns and rows have ends of their own; the first column has a beginning too."""
    rows = printed.split(ROW_END)[:-1]
    return [[None if text == NULL else text for text in row.split(COLUMN_END)[1:-1]] for row in rows]


def test_random_schemas_of_postgresql():
    with postgresql.serving() as running:
        running.execute(TYPES_MADE + "\n".join(made for _, _, made, _ in draw_tables(POSTGRESQL)))

        def printing(name, columns):
            texts = " || ".join(f"CASE WHEN {c} IS NULL THEN chr(4) ELSE {c}::text END || chr(2)" for c in columns)
            return parse(
                running.execute(f"SET TimeZone = 'UTC'; SELECT chr(2) || {texts} || chr(3) FROM {name} ORDER BY n")
            )

        options = {"url": running.url, "user": postgresql.USER, "password": "-"}
        assert compare(POSTGRESQL, options, postgresql.DRIVER, printing) == {}


@pytest.mark.parametrize("scheme", ["mariadb", "mysql"])
def test_random_schemas_of_mariadb(scheme):
    with mariadb.serving() as running:
        running.execute("\n".join(made for _, _, made, _ in draw_tables(MARIADB)))

        def printing(name, columns):
            texts = ", ".join(f"COALESCE(CAST({c} AS CHAR), CHAR(4)), CHAR(2)" for c in columns)
            sql = f"SET time_zone = '+00:00'; SELECT CONCAT(CHAR(2), {texts}, CHAR(3)) FROM {name} ORDER BY n"
            return parse(running.execute(sql, "--raw"))

        options = {"url": running.make_url(scheme), "user": mariadb.USER, "password": mariadb.PASSWORD}
        package = mariadb.DRIVER if scheme == "mariadb" else mariadb.CONNECTOR_J
        assert compare(MARIADB, options, package, printing) == {}
