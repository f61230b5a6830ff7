"""Which tables lie in a folder: a folder of equal files is one, other files are one each."""

import gzip

import pytest

from lakewriter.errors import SourceFailedError
from lakewriter.init.file_tables import find_tables

ORDERS = "order_id,customer,amount,updated_at\n1,a,2.5,2026-01-01\n"
VIP = "order_id,customer,amount,updated_at,vip\n1,a,2.5,2026-01-01,true\n"
USERS = "id,name,email\n1,a,a@x.org\n"
PRODUCTS = "id,name,price\n1,a,2.50\n"

FOLDERS = [
    # files below data/, tables with their paths from there
    ({"orders.csv": ORDERS}, {"orders": ["orders.csv"]}),
    ({"orders.csv": ORDERS, "users.csv": USERS}, {"orders": ["orders.csv"], "users": ["users.csv"]}),
    # One column of two files in common is no table: id and name are everybody's.
    ({"users.csv": USERS, "products.csv": PRODUCTS}, {"products": ["products.csv"], "users": ["users.csv"]}),
    # A folder of equal files is a table of the folder's name, as is one with a part of a table.
    ({"orders/1.csv": ORDERS, "orders/2.csv": ORDERS}, {"orders": ["orders"]}),
    ({"orders/part-0001.csv": ORDERS}, {"orders": ["orders"]}),
    ({"orders/_SUCCESS": "", "orders/a.csv": ORDERS, "orders/b.csv": ORDERS}, {"orders": ["orders"]}),
    # A column that later files have more makes no second table.
    ({"orders/jan.csv": ORDERS, "orders/feb.csv": VIP}, {"orders": ["orders"]}),
    # Files of one table beside others go by what their names have in common.
    (
        {"orders_2026-01.csv": ORDERS, "orders_2026-02.csv": VIP, "users.csv": USERS},
        {"orders": ["orders_[0-9]*.csv"], "users": ["users.csv"]},
    ),
    # The pattern takes tomorrow's file, of the next month and year too, and no other table's.
    (
        {"orders-2026-11-01.csv": ORDERS, "orders-2026-11-02.csv": ORDERS, "orders-old.csv": USERS},
        {"orders": ["orders-[0-9]*.csv"], "orders-old": ["orders-old.csv"]},
    ),
    # Names that are dates alone leave the table its folder's name.
    (
        {"shop/2026-11-01.csv": ORDERS, "shop/2026-11-02.csv": ORDERS, "shop/notes.csv": USERS},
        {"shop": ["shop/[0-9]*.csv"], "notes": ["shop/notes.csv"]},
    ),
    (
        {"shop/2026-11-01.csv": ORDERS, "shop/notes.csv": USERS},
        {"shop": ["shop/[0-9]*.csv"], "notes": ["shop/notes.csv"]},
    ),
    # A folder of daily files alone is read as a folder; their own name says more than "data" does.
    ({"orders_20261101.csv": ORDERS, "orders_20261102.csv": ORDERS}, {"orders": [""]}),
    # A date or number at the end of a name is no part of a table's.
    ({"orders_20260131.csv": ORDERS}, {"orders": ["orders_[0-9]*.csv"]}),
    ({"orders_7.csv": ORDERS}, {"orders": ["orders_7.csv"]}),
    ({"a/orders.csv": ORDERS, "b/users.csv": USERS}, {"orders": ["a/orders.csv"], "users": ["b/users.csv"]}),
    # Hive's folders are partitions of one table.
    (
        {"events/day=2026-01-01/a.csv": ORDERS, "events/day=2026-01-02/a.csv": ORDERS},
        {"events": ["events"]},
    ),
    (
        {"users.json": '{"id": 1}\n{"id": 2}\n', "orders.csv": ORDERS},
        {"orders": ["orders.csv"], "users": ["users.json"]},
    ),
]


def write(folder, files):
    for name, text in files.items():
        place = folder / "data" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, "utf-8")
    return str(folder / "data")


@pytest.mark.parametrize(("files", "expected"), FOLDERS)
def test_tables_of_a_folder(tmp_path, files, expected):
    root = write(tmp_path, files)
    found = {table.name: [path[len(root) + 1 :] for path in table.paths] for table in find_tables(root)}
    assert found == expected


GROWTHS = [
    # files below data/, what is named, why more files are expected
    (["orders-2026-01-01.csv"], "data", "the name has a date"),
    (["orders-2026-01-01.csv"], "data/orders-2026-01-01.csv", ""),
    (["orders-2026-01-01.csv", "orders-2026-01-02.csv"], "data", "their names have dates"),
    (["2026-01-01.csv", "2026-01-02.csv"], "data", "their names have dates"),
    (["orders_202601.csv", "orders_202602.csv"], "data", "their names have dates"),
    (["orders_20260101T1000.csv", "orders_20260101T1100.csv"], "data", "their names have dates"),
    (["202601011000.csv", "202601011100.csv"], "data", "their names have dates"),
    (["orders_1.csv", "orders_2.csv"], "data", "their names are numbered"),
    (["1.csv", "2.csv"], "data", ""),
    (["part-0000.csv", "part-0001.csv"], "data", ""),
    (["orders_20261301.csv"], "data", ""),
    (["a.csv", "b.csv"], "data", ""),
    (["day=2026-01-01/a.csv"], "data", "its folders are dates"),
    (["year=2026/month=1/a.csv"], "data", "its folders are dates"),
    (["country=NO/a.csv"], "data", ""),
]


@pytest.mark.parametrize(("names", "path", "growth"), GROWTHS)
def test_names_show_that_more_files_will_come(tmp_path, names, path, growth):
    write(tmp_path, dict.fromkeys(names, ORDERS))
    (table,) = find_tables(str(tmp_path / path))
    assert table.growth == growth


def test_a_compressed_file_is_what_is_in_it(tmp_path):
    (tmp_path / "orders.csv.gz").write_bytes(gzip.compress(ORDERS.encode()))
    (table,) = find_tables(str(tmp_path / "orders.csv.gz"))
    assert (table.name, table.head.format, table.head.names[0]) == ("orders", "csv", "order_id")


def test_files_that_are_no_tables_are_told_beside_those_that_are(tmp_path):
    root = write(tmp_path, {"orders.csv": ORDERS, "empty.csv": "", "more/readme.pdf": "%PDF-1.7\n"})
    (table,) = find_tables(root)
    assert table.name == "orders"
    assert table.problems == (f"{root}/empty.csv is empty.", f"{root}/more/readme.pdf is a PDF.")


REFUSED = [
    # name, bytes, the whole message
    (
        "orders.xlsx",
        b"PK\x03\x04rest",
        "{path} is a ZIP archive, as Excel workbooks are.",
    ),
    ("empty.csv", b" \n", "{path} is empty."),
    ("notes.md", b"# Orders\n", "{path} is text, and by its name neither CSV nor JSON."),
    ("lake.yaml", b"pipeline: shop\n", "{path} is text, and by its name neither CSV nor JSON."),
    ("words.txt", b"one\ntwo\n", "{path} is text, and by its name neither CSV nor JSON."),
    ("lake.schema.json", b'{"$schema": "x", "properties": {}}', "{path} is a JSON Schema, and no data."),
    (
        "catalog.json",
        b'{"streams": [{"stream": {"name": "a"}}]}',
        "{path} is a configured catalog of Airbyte's, and no data.",
    ),
    ("photo.bin", b"\x00\x01\x02\xff" * 10, "{path} is neither text nor a format that is known here."),
]


@pytest.mark.parametrize(("name", "data", "message"), REFUSED)
def test_what_spark_does_not_read(tmp_path, name, data, message):
    place = tmp_path / name
    place.write_bytes(data)
    with pytest.raises(SourceFailedError) as raised:
        find_tables(str(place))
    assert raised.value.message == message.format(path=place)


def test_nothing_there(tmp_path):
    with pytest.raises(SourceFailedError) as raised:
        find_tables(str(tmp_path / "no"))
    assert raised.value.message == f"there is no file or folder {str(tmp_path / 'no')!r}."


@pytest.mark.exhaustive
def test_hundreds_of_files_are_looked_at_in_part(tmp_path):
    root = write(tmp_path, {f"orders/{number:04}.csv": ORDERS for number in range(500)})
    (table,) = find_tables(f"{root}/orders")
    assert (table.name, len(table.files), table.paths) == ("orders", 500, (f"{root}/orders",))


def test_tables_of_a_prefix_in_s3(aws):
    s3 = aws.client("s3")
    s3.create_bucket(Bucket="landing")
    keys = {
        "exports/orders/1.csv": ORDERS,
        "exports/orders/2.csv": VIP,
        "exports/users.csv": USERS,
        "exports/_SUCCESS": "",
        "exports/events/day=1/a.csv": ORDERS,
    }
    for key, text in keys.items():
        s3.put_object(Bucket="landing", Key=key, Body=text.encode())
    found = {table.name: (table.paths, len(table.files)) for table in find_tables("s3://landing/exports/")}
    assert found == {
        "orders": (("s3://landing/exports/orders",), 2),
        "users": (("s3://landing/exports/users.csv",), 1),
        "events": (("s3://landing/exports/events",), 1),
    }
    (one,) = find_tables("s3://landing/exports/users.csv")
    assert one.paths == ("s3://landing/exports/users.csv",)
    with pytest.raises(SourceFailedError) as raised:
        find_tables("s3://landing/nothing")
    assert raised.value.message == "nothing lies under s3://landing/nothing."
