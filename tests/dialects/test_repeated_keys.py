"""``read.files`` and ``repeated``: what tables get, and what is refused."""

import pytest
import yaml

from lakewriter.dialects.lake_yaml import load_spec
from lakewriter.errors import SpecInvalidError

NEW = {"format": "csv", "path": "in", "files": "new"}
ALL = {"format": "csv", "path": "in"}


def read_tables(folder, *tables, **top):
    destination = {"type": "lakewriter-s3", "location": "s3://acme-lake/lake", "region": "us-east-1"}
    entries = [{"table": f"t{number}", **entry} for number, entry in enumerate(tables)]
    path = folder / "lake.yaml"
    path.write_text(yaml.safe_dump({"pipeline": "p", "destination": destination, "tables": entries, **top}), "utf-8")
    return load_spec(path).tables


SETTLED = [
    # the table's entry, the key at the top, what is settled
    ({"read": ALL}, {}, "warn"),
    ({"read": NEW}, {}, "fail"),
    ({"read": {"sql": "SELECT * FROM v", "views": {"v": NEW}}}, {}, "fail"),
    ({"read": NEW}, {"repeated": "warn"}, "warn"),
    ({"read": ALL, "repeated": "allow"}, {"repeated": "fail"}, "allow"),
    ({"read": ALL}, {"repeated": "fail"}, "fail"),
]


@pytest.mark.parametrize(("entry", "top", "expected"), SETTLED)
def test_what_is_settled(tmp_path, entry, top, expected):
    (table,) = read_tables(tmp_path, entry, **top)
    assert table.repeated == expected


REFUSED = [
    # the table's entry, what the message has
    (
        {"read": {"format": "jdbc", "options": {"url": "jdbc:x"}, "files": "new"}},
        "'files: new' is for a 'path' of av",
    ),
    ({"read": {"format": "delta", "path": "in", "files": "new"}}, "'files: new' is for a 'path' of av"),
    ({"read": NEW, "cursor": "at"}, "'files: new' and 'cursor' both say what later loads read"),
    ({"read": NEW, "mode": "refresh"}, "'mode: refresh' replaces rows"),
    ({"read": ALL, "repeated": "never"}, "repeated"),
    ({"read": ALL | {"files": "old"}}, "files"),
]


@pytest.mark.parametrize(("entry", "text"), REFUSED)
def test_what_is_refused(tmp_path, entry, text):
    with pytest.raises(SpecInvalidError) as refused:
        read_tables(tmp_path, entry)
    assert text in str(refused.value.problems)
