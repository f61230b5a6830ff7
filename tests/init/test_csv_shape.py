"""How a CSV file is written, and the options with which it is read so."""

import pytest

from lakewriter.init.csv_shape import read_shape

SHAPES = [
    # bytes, columns, options
    (b"id,name\n1,a\n", ("id", "name"), {"header": True}),
    (b"\xef\xbb\xbfid,name\r\n1,a\r\n", ("id", "name"), {"header": True}),
    (b"id;price\n1;2,50\n2;3,10\n", ("id", "price"), {"header": True, "sep": ";"}),
    (b"id\tname\n1\ta\n", ("id", "name"), {"header": True, "sep": "\t"}),
    (b"id|name\n1|a\n", ("id", "name"), {"header": True, "sep": "|"}),
    (b"id\n1\n2\n", ("id",), {"header": True}),
    # A first row of values is no header; a load names columns by their number then.
    (b"1,a\n2,b\n", ("_c0", "_c1"), {"header": False}),
    (b"a,2026-01-01\nb,2026-01-02\n", ("_c0", "_c1"), {"header": False}),
    (b"a,a\nb,c\n", ("_c0", "_c1"), {"header": False}),
    # pandas writes its index without a name.
    (b",id,name\n0,7,a\n", ("_c0", "id", "name"), {"header": True}),
    (b"id,value,Value\n1,2,3\n", ("id", "value", "Value"), {"header": True}),
    # A comma inside quotes separates nothing; a doubled quote is a quote.
    (b'id,name\n1,"a, b"\n', ("id", "name"), {"header": True}),
    (b'id,name\n1,"say ""hi"""\n', ("id", "name"), {"header": True}),
    (b'id,name\n1,"two\nlines"\n', ("id", "name"), {"header": True}),
    ("id,name\n1,Müller\n".encode("cp1252"), ("id", "name"), {"header": True, "encoding": "windows-1252"}),
    ("id,name\n1,Müller\n".encode("utf-16"), ("id", "name"), {"header": True}),
    ("id,name\n1,Müller\n".encode(), ("id", "name"), {"header": True}),
    (b" id , name \n1,a\n", (" id ", " name "), {"header": True}),
    # Russian is no Western text: no charset is better than a wrong one.
    ("id,name\n1,\u041f\u0440\u0438\u0432\u0435\u0442\n".encode("cp1251"), ("id", "name"), {"header": True}),
]


@pytest.mark.parametrize(("data", "names", "options"), SHAPES)
def test_shapes(data, names, options):
    shape = read_shape("a.csv", data, is_whole=True)
    assert (shape.names, shape.options) == (names, options)
