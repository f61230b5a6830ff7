"""Tables of random columns and values of PostgreSQL and MariaDB: what is read is what the server prints."""

import os
import random
from typing import Any

import pytest

from tests.interop import mariadb, postgresql
from tests.interop.test_database_types import MARIADB, POSTGRESQL, SAME, is_same, read_tables

pytestmark = [pytest.mark.timeout(3600), pytest.mark.exhaustive]

SCHEMAS = int(os.environ.get("LAKEWRITER_SCHEMAS", "200"))
SEED = 44


def draw_integer(chance, low, high):
    return str(chance.choice([low, high, 0, chance.randint(low, high)]))


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


RANGES = {"smallint": 15, "integer": 31, "int": 31, "bigint": 63, "mediumint": 23, "tinyint": 7}


def draw_column(chance, types):
    """A type, and a function that draws literals of it."""
    kind = chance.choice([*RANGES, "decimal", "text", "date", "moment", "table"])
    known = {entry[0] for entry in types}
    if kind in RANGES and kind in known:
        bits = RANGES[kind]
        return kind, lambda: draw_integer(chance, -(2**bits), 2**bits - 1)
    if kind == "decimal":
        precision = chance.randint(1, 38)
        scale = chance.randint(0, min(precision, 30))
        top = 10**precision - 1
        return f"decimal({precision}, {scale})", lambda: write_decimal(chance.randint(-top, top), scale)
    if kind == "text":
        return "varchar(40)", lambda: quote(draw_text(chance))
    if kind == "date":
        return "date", lambda: quote(draw_moment(chance, 0)[0])
    if kind == "moment":
        places = chance.choice([0, 3, 6])
        name = "timestamp" if "jsonb" in known else "datetime"
        return f"{name}({places})", lambda: quote(draw_moment(chance, places)[1])
    same = [entry for entry in types if any(expected == SAME for _, expected in entry[2])]
    name, _, literals = chance.choice(same)
    fitting = [literal for literal, expected in literals if expected == SAME]
    return name, lambda: chance.choice(fitting)


def write_decimal(number, scale):
    digits = f"{abs(number):0{scale + 1}}"
    whole = f"{digits[:-scale]}.{digits[-scale:]}" if scale else digits
    return f"-{whole}" if number < 0 else whole


def draw_tables(types):
    """The statements and the columns of the tables."""
    chance = random.Random(SEED)
    for number in range(SCHEMAS):
        columns = [draw_column(chance, types) for _ in range(chance.randint(1, 8))]
        names = [f"c{place}" for place in range(len(columns))]
        kinds = [kind if " null" in kind else f"{kind} null" for kind, _ in columns]
        nulls = (f"{name} {kind}" for name, kind in zip(names, kinds, strict=True))
        rows = []
        for row in range(chance.randint(0, 5)):
            values = ("NULL" if chance.random() < 0.2 else draw() for _, draw in columns)
            rows.append(f"({row}, {', '.join(values)})")
        made = f"CREATE TABLE r{number} (n int, {', '.join(nulls)});"
        yield f"r{number}", names, made + (f" INSERT INTO r{number} VALUES {', '.join(rows)};" if rows else "")


def compare(types, options, package, prints):
    """What differs from what the server prints, by table, row and column."""
    tables = list(draw_tables(types))
    found = read_tables([{"options": {**options, "dbtable": name}} for name, _, _ in tables], package)
    wrong: dict[Any, Any] = {}
    for (name, columns, made), result in zip(tables, found, strict=True):
        if "error" in result:
            wrong[name] = (made, result)
            continue
        rows = sorted(result["rows"], key=lambda row: int(row[0]))
        shown = prints(name, columns)
        if len(rows) != len(shown):
            wrong[name] = (made, rows, shown)
        for row, texts in zip(rows, shown, strict=False):
            for column, value, text in zip(columns, row[1:], texts, strict=True):
                is_null = text is None
                if (value is None) != is_null or (not is_null and not is_same(value, text)):
                    wrong[name, row[0], column] = (value, text)
    return wrong


def test_random_schemas_of_postgresql():
    with postgresql.serving() as running:
        running.execute(
            "CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE DOMAIN positive AS int CHECK (VALUE > 0);"
            "CREATE TYPE pair AS (a int, b text);"
        )
        running.execute("\n".join(made for _, _, made in draw_tables(POSTGRESQL)))

        def prints(name, columns):
            texts = " || chr(31) || ".join(map(show, columns))
            out = running.execute(f"SET TimeZone = 'UTC'; SELECT {texts} || chr(29) FROM {name} ORDER BY n")
            rows = [row.strip("\n") for row in out.split("\x1d")[:-1]]
            return [[None if text == "\x1e" else text for text in row.split("\x1f")] for row in rows]

        options = {"url": running.url, "user": postgresql.USER, "password": "-"}
        assert compare(POSTGRESQL, options, postgresql.DRIVER, prints) == {}


def show(column):
    return f"CASE WHEN {column} IS NULL THEN chr(30) ELSE concat({column}) END"


def test_random_schemas_of_mariadb():
    with mariadb.serving() as running:
        running.execute("\n".join(made for _, _, made in draw_tables(MARIADB)))

        def prints(name, columns):
            texts = ", ".join(f"COALESCE(CAST({column} AS CHAR), CHAR(30))" for column in columns)
            row = f"CONCAT(CONCAT_WS(CHAR(31), {texts}), CHAR(29))"
            sql = f"SET time_zone = '+00:00'; SELECT {row} FROM {name} ORDER BY n"
            rows = [row.strip("\n") for row in running.execute(sql, "--raw").split("\x1d")[:-1]]
            return [[None if text == "\x1e" else text for text in row.split("\x1f")] for row in rows]

        options = {"url": running.make_url(), "user": mariadb.USER, "password": mariadb.PASSWORD}
        assert compare(MARIADB, options, mariadb.DRIVER, prints) == {}
