"""Rules that hold for files of every format: one expectation a rule, and the exceptions that docs/sources.md names."""

import csv
import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq
import pyarrow.types as pt
import pytest

from lakewriter.column_types import is_void, name_type, to_stored_type
from lakewriter.errors import LakeError
from lakewriter.receipt import Absent
from lakewriter.source.bad_rows import read_absent
from lakewriter.source.files.file_source import open_files
from lakewriter.spec.source_formats import FORMATS as SOURCE_FORMATS
from lakewriter.spec.table_spec import Read
from tests.source.files.reading import in_turn
from tests.source.tables import table

PAGE = Path(__file__).parents[3] / "docs" / "sources.md"
FORMATS = sorted(name for name, form in SOURCE_FORMATS.items() if form.has_reader)
LONG, TEXT, DOUBLE = pa.int64(), pa.string(), pa.float64()


@dataclass(frozen=True)
class Rows:
    """Rows that are read: types by name, sorted rows as names and values, a part of a note."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    note: str = ""


@dataclass(frozen=True)
class Bad:
    """No row is good, and a part of the reason."""

    reason: str


@dataclass(frozen=True)
class Refused:
    """A part of the error's code and message."""

    text: str


NEVER = None
"""The format has no file to which the rule applies."""
Outcome = Rows | Bad | Refused | None
Files = tuple[pa.Table | None, ...]


def one(**columns: tuple[pa.DataType, list[Any]]) -> pa.Table:
    return pa.table({name: pa.array(values, kind) for name, (kind, values) in columns.items()})


def two(first: str, second: str, *values: int) -> pa.Table:
    return pa.Table.from_arrays([pa.array([value], LONG) for value in values], names=[first, second])


def struct(*names: str) -> pa.DataType:
    return pa.struct([pa.field(name, LONG) for name in names])


def nest(levels: int) -> pa.Table:
    kind: pa.DataType = LONG
    value: Any = 1
    for _ in range(levels):
        kind, value = pa.list_(kind), [value]
    return one(a=(kind, [value]))


def describe_avro(kind: pa.DataType, name: str) -> Any:
    if pt.is_null(kind):
        return "null"
    if pt.is_struct(kind):
        made: Any = {"type": "record", "name": name, "fields": [list_avro_field(each, name) for each in kind]}
    elif pt.is_map(kind):
        made = {"type": "map", "values": describe_avro(kind.item_type, name)}
    elif pt.is_list(kind):
        made = {"type": "array", "items": describe_avro(kind.value_type, name)}
    elif pt.is_decimal(kind):
        made = {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    else:
        made = {"int32": "int", "int64": "long"}.get(str(kind), str(kind))
    return ["null", made]


def list_avro_field(field: pa.Field, name: str) -> dict[str, Any]:
    return {"name": field.name, "type": describe_avro(field.type, f"{name}_{field.name or 'blank'}")}


def write_avro(content: pa.Table) -> bytes:
    """Its library takes neither a name twice nor a key twice: they are put in afterwards, as long as before."""
    names = ["a", "b"] if content.column_names == ["a", "a"] else content.column_names
    fields = [list_avro_field(field.with_name(name), "r") for field, name in zip(content.schema, names, strict=True)]
    rows = [dict(zip(names, map(to_avro, row), strict=True)) for row in list_rows(content)]
    file = io.BytesIO()
    schema = fastavro.parse_schema({"type": "record", "name": "r", "fields": fields})
    fastavro.writer(file, schema, rows, sync_marker=b"-" * 16)
    written = file.getvalue().replace(b"\x02l", b"\x02k")
    return written if names == content.column_names else written.replace(b'"b"', b'"a"')


def to_avro(value: Any) -> Any:
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return dict(zip("kl", (number for _, number in value), strict=False))
    return value


def to_json(value: Any) -> str:
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return "{" + ",".join(f"{json.dumps(key)}:{to_json(inner)}" for key, inner in value) + "}"
    if isinstance(value, list):
        return f"[{','.join(map(to_json, value))}]"
    if isinstance(value, dict):
        return to_json(list(value.items())) if value else "{}"
    return str(value) if isinstance(value, Decimal) else json.dumps(value)


def write_json(content: pa.Table) -> bytes:
    rows = [list(zip(content.column_names, row, strict=True)) for row in list_rows(content)]
    return "".join(f"{to_json(row) if row else '{}'}\n" for row in rows).encode()


def write_csv(content: pa.Table) -> bytes:
    """Texts are in quotes, and nulls are nothing."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_STRINGS if hasattr(csv, "QUOTE_STRINGS") else 0)
    writer.writerow(content.column_names)
    for row in list_rows(content):
        file.write(",".join(map(to_field, row)) + "\n")
    return file.getvalue().encode()


def to_field(value: Any) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else to_json(value)
    return '"' + text.replace('"', '""') + '"' if isinstance(value, str | list | dict) else text


def write_text(content: pa.Table) -> bytes:
    return "".join(f"{' '.join(map(str, row))}\n" for row in list_rows(content)).encode()


def write_by_arrow(write: Callable[[pa.Table, Any], None]) -> Callable[[pa.Table], bytes]:
    def write_to_bytes(content: pa.Table) -> bytes:
        file = io.BytesIO()
        write(content, file)
        return file.getvalue()

    return write_to_bytes


def list_rows(content: pa.Table) -> list[tuple[Any, ...]]:
    columns = [column.to_pylist() for column in content.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * content.num_rows


WRITERS: Mapping[str, Callable[[pa.Table], bytes]] = {
    "avro": write_avro,
    "csv": write_csv,
    "json": write_json,
    "orc": write_by_arrow(po.write_table),
    "parquet": write_by_arrow(pq.write_table),
    "text": write_text,
}
TYPED = ("Avro", "ORC", "Parquet")
A, AB = one(a=(LONG, [1])), one(a=(LONG, [1]), b=(LONG, [2]))
NO_COLUMN = pa.table({"a": [1, 2]}).select([])
MEMBERS = one(s=(struct("x", "y"), [{"x": 1, "y": 2}]))
A_NULL = Rows(("a bigint", "b bigint"), ((1, 2), (3, None)))


def except_for(names: str | Sequence[str], outcome: Outcome) -> dict[str, Outcome]:
    return dict.fromkeys([names] if isinstance(names, str) else names, outcome)


RULES: dict[str, tuple[Files, dict[str, Any], Outcome, dict[str, Outcome]]] = {
    # rule: files, columns: or read.columns, what all formats do, what others do
    "a column that `columns:` lacks": ((AB,), {"a": "bigint"}, Rows(("a bigint", "b bigint"), ((1, 2),)), {}),
    "a column of `columns:` that no file has": (
        (A,), {"c": "bigint"}, Refused("SPEC_INVALID: tables.s.t.columns names 'c', which the source does not have"),
        {}),
    "a member that a struct of `columns:` lacks": (
        (MEMBERS,), {"s": "struct<x:bigint>"}, Bad("the struct has no field 'y'"),
        except_for(TYPED, Refused("SPEC_INVALID: tables.s.t.columns declares 's' as struct<x:bigint>"))),
    "a member of `columns:` that no value has": (
        (one(s=(struct("x"), [{"x": 1}])),), {"s": "struct<x:bigint,y:bigint>"},
        Rows(("s struct<x:bigint,y:bigint>",), (({"x": 1, "y": None},),)), {}),
    "a column that `read.columns` lacks": (
        (AB,), {"read": "a bigint"}, Rows(("a bigint",), ((1,),)),
        except_for("CSV", Refused("SCHEMA_INCOMPATIBLE: table 's.t': read.columns has 1 column"))),
    "a column of `read.columns` that no file has": (
        (A,), {"read": "a bigint, c bigint"}, Refused("SCHEMA_INCOMPATIBLE: table 's.t': read.columns "),
        except_for("JSON", Rows(("a bigint", "c bigint"), ((1, None),), note="1 without c"))),
    "a name twice in one file": (
        (two("a", "a", 1, 2),), {}, Rows(("a bigint", "a bigint"), ((1, 2),)),
        except_for("JSON", Bad('the key "a" is twice in one object'))),
    "names in one file that differ by case": (
        (two("Id", "id", 1, 2),), {}, Rows(("Id bigint", "id bigint"), ((1, 2),)), {}),
    "names of two files that differ by case": (
        (one(Id=(LONG, [1])), one(id=(LONG, [2]))), {}, Rows(("Id bigint",), ((1,), (2,))), {}),
    "members of one struct that differ by case": (
        (one(s=(struct("Id", "id"), [{"Id": 1, "id": 2}])),), {"s": "struct<Id:bigint,id:bigint>"},
        Rows(("s struct<id:bigint,id:bigint>",), (({"Id": 1, "id": 2},),)), {}),
    "members of two files that differ by case": (
        (one(s=(struct("Id"), [{"Id": 1}])), one(s=(struct("id"), [{"id": 2}]))), {},
        Rows(("s struct<id:bigint>",), (({"Id": 1},), ({"Id": 2},))),
        except_for("CSV", Rows(("s string",), (('{"Id":1}',), ('{"id":2}',))))),
    "a blank name": (
        (two("a", "", 1, 2),), {}, Rows((" bigint", "a bigint"), ((2, 1),)),
        except_for("CSV", Rows(("_c1 bigint", "a bigint"), ((2, 1),)))),
    "a file without a byte": ((None,), {}, Refused("SOURCE_FAILED: table 's.t': "), {}),
    "a file without a byte, with `read.columns`": ((None,), {"read": "a bigint"}, Rows(("a bigint",), ()), {}),
    "a file without a byte beside others": ((None, A), {}, Rows(("a bigint",), ((1,),), note="0."), {}),
    "columns without rows": (
        (one(a=(LONG, [])),), {}, Rows(("a bigint",), ()), {"CSV": Rows(("a null",), ()), "JSON": NEVER}),
    "columns without rows beside others": (
        (one(a=(LONG, []), b=(LONG, [])), A), {}, Rows(("a bigint", "b bigint"), ((1, None),)),
        {"CSV": Rows(("a bigint", "b null"), ((1, None),)), "JSON": NEVER}),
    "rows without a column": (
        (NO_COLUMN,), {}, Refused("SOURCE_FAILED: table 's.t': "), except_for(("ORC",), NEVER)),
    "rows without a column beside others": (
        (NO_COLUMN, A), {}, Rows(("a bigint",), ((1,), (None,), (None,))),
        except_for(("CSV", "ORC", "Parquet"), NEVER)),
    "a column that a file lacks": (
        (AB, one(a=(LONG, [3]))), {}, A_NULL, {}),
    "columns in another order": (
        (AB, one(b=(LONG, [4]), a=(LONG, [3]))), {}, Rows(("a bigint", "b bigint"), ((1, 2), (3, 4))), {}),
    "a member that a file lacks": (
        (MEMBERS, one(s=(struct("x"), [{"x": 3}]))), {},
        Rows(("s struct<x:bigint,y:bigint>",), (({"x": 1, "y": 2},), ({"x": 3, "y": None},))),
        except_for("CSV", Rows(("s string",), (('{"x":1,"y":2}',), ('{"x":3}',))))),
    "int beside bigint": (
        (one(a=(pa.int32(), [7])), one(a=(LONG, [2**40]))), {}, Rows(("a bigint",), ((7,), (2**40,))), {}),
    "int beside double": (
        (one(a=(pa.int32(), [7])), one(a=(DOUBLE, [1.5]))), {}, Rows(("a double",), ((1.5,), (7.0,))), {}),
    "bigint beside double": (
        (one(a=(LONG, [2**53 + 1])), one(a=(DOUBLE, [1.5]))), {}, Refused("SCHEMA_INCOMPATIBLE"),
        {"CSV": Rows(("a string",), (("1.5",), ("9007199254740993",))),
         "JSON": Rows(("a decimal(17,1)",), ((Decimal("1.5"),), (Decimal("9007199254740993.0"),)))}),
    "a number beside a text": (
        (A, one(a=(TEXT, ["x"]))), {}, Refused("SCHEMA_INCOMPATIBLE"),
        except_for(("CSV", "JSON"), Rows(("a string",), (("1",), ("x",))))),
    "a number beside a struct": (
        (A, one(a=(struct("x"), [{"x": 1}]))), {}, Refused("SCHEMA_INCOMPATIBLE"),
        except_for(("CSV", "JSON"), Rows(("a string",), (("1",), ('{"x":1}',))))),
    "decimals of other precision and scale": (
        (one(a=(pa.decimal128(10, 1), [Decimal("12.5")])), one(a=(pa.decimal128(10, 3), [Decimal("1.125")]))), {},
        Rows(("a decimal(12,3)",), ((Decimal("1.125"),), (Decimal("12.500"),))),
        except_for(("CSV", "JSON"), Rows(("a double",), ((1.125,), (12.5,))))),
    "a list": (
        (one(a=(pa.list_(LONG), [[1, None], [], None])),), {"a": "array<bigint>"},
        Rows(("a array<bigint>",), ((None,), ([1, None],), ([],))), {}),
    "a map": (
        (one(a=(pa.map_(TEXT, LONG), [[("k", 1)]])),), {"a": "map<string,bigint>"},
        Rows(("a map<string,bigint>",), (([("k", 1)],),)), {}),
    "a key twice in a map": (
        (one(a=(pa.map_(TEXT, LONG), [[("k", 1), ("k", 2)]])),), {"a": "map<string,bigint>"},
        Rows(("a map<string,bigint>",), (([("k", 1), ("k", 2)],),)),
        except_for(("CSV", "JSON"), Bad('the key "k" is twice in one object'))),
    "nulls in and around a struct": (
        (one(a=(LONG, [1, 2]), s=(struct("x"), [{"x": None}, None])),), {"s": "struct<x:bigint>"},
        Rows(("a bigint", "s struct<x:bigint>"), ((1, {"x": None}), (2, None))), {}),
    "a null": ((one(a=(LONG, [1, 3]), b=(LONG, [2, None])),), {}, A_NULL, {}),
    "a column of nulls alone": (
        (one(a=(LONG, [1]), b=(LONG, [None])),), {}, Rows(("a bigint", "b bigint"), ((1, None),)),
        except_for(("CSV", "JSON"), Rows(("a bigint", "b null"), ((1, None),)))),
    "the type null": (
        (one(a=(LONG, [1]), b=(pa.null(), [None])),), {}, Rows(("a bigint", "b null"), ((1, None),)),
        except_for("ORC", NEVER)),
    "an empty text": (
        (one(a=(LONG, [1, 2]), b=(TEXT, ["", None])),), {}, Rows(("a bigint", "b string"), ((1, ""), (2, None))), {}),
    "the text NULL": (
        (one(a=(TEXT, ["NULL", "null"])),), {}, Rows(("a string",), (("NULL",), ("null",))), {}),
    "49 lists in one another": (
        (nest(49),), {}, Rows((f"a {'array<' * 49}bigint{'>' * 49}",), ((nest(49)["a"][0].as_py(),),)),
        except_for("CSV", Rows(("a string",), (("[" * 49 + "1" + "]" * 49,),)))),
    "50 lists in one another": ((nest(50),), {}, Refused("nest"),
        except_for("CSV", Rows(("a string",), (("[" * 50 + "1" + "]" * 50,),)))),
}  # fmt: skip
"""Text has one column, with a row for each line, whatever the rule; it is left out where there is none."""
WORDS = {Refused: "refused", Bad: "a bad row", Rows: "", type(NEVER): "cannot occur"}
"""What the page calls an outcome; of rows it says what they are."""


def list_lines(files: Files) -> Rows:
    lines = [line for content in files if content is not None for line in write_text(content).decode().splitlines()]
    return Rows(("value string",), tuple((line,) for line in sorted(lines)))


def read_outcome(folder: Path, form: str, files: Files, given: Mapping[str, Any]) -> Outcome:
    """Write the files, read them in one task, and plan the types that a table's files would have."""
    for number, content in enumerate(files):
        (folder / f"{number}.{form}").write_bytes(b"" if content is None else WRITERS[form](content))
    options = {"header": "true", "inferSchema": "true"} if form == "csv" else {}
    read = Read(format=form, path=str(folder), options=options, columns=given.get("read"))
    declared = {} if "read" in given else given
    try:
        opened = open_files(table(columns=declared), read, options, in_turn, aside=True)
        batches = list(opened.source.read_all(opened.cut(1 << 30, in_turn)))
        [to_stored_type(field.name, field.type) for field in opened.source.schema if not is_void(field.type)]
    except LakeError as error:
        bad = re.search(r"no document of .* has a column; at byte 0: (.*)", error.message)
        return Refused(str(error)) if bad is None else Bad(bad[1])
    fields = list(opened.source.schema)
    order = sorted(range(len(fields)), key=lambda index: fields[index].name)
    good, reasons = [], []
    for batch in batches:
        for *row, mark in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            if mark["reason"] is None:
                good.append(tuple(row[index] for index in order))
            else:
                reasons.append(mark["reason"])
    if reasons:
        assert not good
        return Bad(reasons[0])
    columns = tuple(f"{fields[index].name} {name_type(fields[index].type)}" for index in order)
    if form == "csv":
        # Its numbers get the shortest type, and no file says that small ones have a longer one.
        columns = tuple(re.sub(" int$", " bigint", column) for column in columns)
    absent = Absent.join(read_absent(batch.schema) for batch in batches)
    told = [] if absent is None else [f"{absent.documents} without {', '.join(absent.columns)}"]
    return Rows(columns, tuple(sorted(good, key=repr)), "; ".join([*opened.notes, *told]))


def list_page_rows() -> dict[str, tuple[str, dict[str, str]]]:
    """The rules of the page, each with what all formats do and, by format, what others do."""
    section = PAGE.read_text("utf-8").partition("## All formats\n")[2].partition("\n## ")[0]
    rows = {}
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and cells[0] not in {"in the files", "---"}:
            others = (part.partition(": ") for part in cells[2].split("; ") if part)
            rows[cells[0]] = cells[1], {name: words for names, _, words in others for name in names.split(", ")}
    return rows


def test_page_has_every_rule_and_its_exceptions():
    page = list_page_rows()
    assert list(page) == list(RULES)
    for rule, (_, _, outcome, others) in RULES.items():
        words, other_words = page[rule]
        assert set(other_words) == set(others), rule
        for written, kind in [(words, outcome), *((other_words[name], other) for name, other in others.items())]:
            said = [word for word in WORDS.values() if word and written.startswith(word)]
            assert said == ([WORDS[type(kind)]] if WORDS[type(kind)] else []), (rule, written)


def test_every_format_has_a_writer():
    assert sorted(WRITERS) == FORMATS


CELLS = [(rule, form) for rule, form in product(RULES, FORMATS)]


@pytest.mark.parametrize(("rule", "form"), CELLS, ids=[f"{form}: {rule}" for rule, form in CELLS])
def test_rule(tmp_path, rule, form):
    files, given, outcome, others = RULES[rule]
    others = {name.lower(): other for name, other in others.items()}
    expected = others.get(form, outcome)
    if form == "text":
        if given or any(content is None for content in files):
            return
        expected = list_lines(files)
    if expected is NEVER:
        return
    found = read_outcome(tmp_path, form, files, given)
    assert isinstance(found, type(expected)), found
    if isinstance(expected, Rows) and isinstance(found, Rows):
        assert (found.columns, found.rows) == (expected.columns, tuple(sorted(expected.rows, key=repr)))
        assert expected.note in found.note
    elif isinstance(expected, Bad) and isinstance(found, Bad):
        assert expected.reason in found.reason
    elif isinstance(expected, Refused) and isinstance(found, Refused):
        assert expected.text in found.text


@pytest.mark.parametrize("form", ["avro", "orc"])
def test_types_of_hundreds_of_levels_are_refused(tmp_path, form):
    """The interpreter's own limit is no error of a load."""
    if form == "orc":
        content = WRITERS[form](nest(1000))
    else:
        kind = '{"type":"array","items":' * 1000 + '"long"' + "}" * 1000
        schema = f'{{"type":"record","name":"r","fields":[{{"name":"a","type":{kind}}}]}}'.encode()
        size = io.BytesIO()
        fastavro.schemaless_writer(size, {"type": "bytes"}, schema)
        content = b"Obj\x01\x02\x16avro.schema" + size.getvalue() + b"\x00" + b"s" * 16
    (tmp_path / f"a.{form}").write_bytes(content)
    with pytest.raises(LakeError, match=r"INCOMPATIBLE: .* a column of .* nests more than 994 levels deep"):
        open_files(table(), Read(format=form, path=str(tmp_path)), {}, in_turn, aside=True)
