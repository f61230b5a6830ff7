"""Types that the values of files give a table's columns: what one load has given, later loads keep."""

import io
import json
import re
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from lakewriter.aws import Clients
from lakewriter.commit.control import Control
from lakewriter.commit.pipeline import Pipeline
from lakewriter.operate.rebuild import InCatalog, rebuild
from lakewriter.operate.undo import Undo
from lakewriter.operate.undo_plan import Choices
from lakewriter.records.state import TableState
from lakewriter.report import TableResult
from tests.commit.edits import Edit
from tests.load.lakes import BUCKET, Lake
from tests.load.refreshed import Refreshed
from tests.operate.shop import FILES, ICEBERG
from tests.support.local_tasks import local_session
from tests.support.narrow import need
from tests.support.sample import in_turn

GLUE: dict[str, Any] = {}
PLACES = {"files": FILES, "glue": GLUE, "iceberg": ICEBERG}


class Values:
    """A pipeline of one table ``values``, each of whose loads has one file of its own."""

    def __init__(self, lake: Lake, place: str = "files") -> None:
        self.lake, self.place, self.table = lake, place, "values"

    def load(self, job: str, kind: str, *lines: str, **fields: Any) -> TableResult:
        """Load lines of JSON, or the values of the column ``v`` of a CSV file."""
        text = "".join(f"{line}\n" for line in (["id,v", *(f"1,{line}" for line in lines)] if kind == "csv" else lines))
        (self.lake.folder / f"{job}.{kind}").write_text(text, "utf-8")
        read: dict[str, Any] = {"format": kind, "path": f"{job}.{kind}"}
        if kind == "csv":
            read["options"] = {"header": "true", "inferSchema": "true"}
        self.lake.write({"table": self.table, "schema": "public", "read": read} | fields, **PLACES[self.place])
        (result,) = self.lake.load(job).tables
        return result

    @property
    def control(self) -> Control:
        return self.lake.control(self.lake.spec.tables[0].id)

    @property
    def state(self) -> TableState:
        return self.control.state.read()

    def undo(self, job: str) -> None:
        pipeline = Pipeline.open(self.lake.spec, Clients(self.lake.spec.access))
        Undo(pipeline, job, Choices("a drill")).run()

    def list_kinds(self, column: str = "v") -> list[str]:
        """The type of a column in each data file, in the order of the loads; ``-`` where a file lacks it."""
        objects = self.lake.aws.objects(BUCKET)
        keys = [key for key in objects if key.endswith(".parquet") and f"public/{self.table}/" in key]
        keys.sort(key=lambda key: self.lake.aws.client("s3").head_object(Bucket=BUCKET, Key=key)["LastModified"])
        schemas = [pq.read_schema(io.BytesIO(objects[key])) for key in keys]
        return sorted(str(schema.field(column).type) if column in schema.names else "-" for schema in schemas)

    def read(self, column: str = "v") -> list[Any]:
        """The values in all data files, sorted by their text."""
        objects = self.lake.aws.objects(BUCKET)
        keys = [key for key in objects if key.endswith(".parquet") and f"public/{self.table}/" in key]
        tables = [pq.read_table(io.BytesIO(objects[key])) for key in keys]
        values = [v for one in tables if column in one.column_names for v in one[column].to_pylist()]
        return sorted(values, key=str)


@pytest.fixture
def local(tmp_path, aws, bucket) -> Lake:
    return Lake(tmp_path, aws, local_session(2))


def doc(value: str) -> str:
    return f'{{"id":1,"v":{value}}}'


SAME = [
    # format, the values of two loads, the type of the column in the files of both, the values of the second
    ("json", ["1.5"], ["2"], "double", [2.0]),
    ("json", ["1"], ["2"], "int64", [2]),
    ("json", ['"a"'], ["5"], "string", ["5"]),
    ("json", ['"a"'], ["true"], "string", ["true"]),
    ("json", ['"a"'], ['{"x":1}'], "string", ['{"x":1}']),
    ("json", ["12345678901234567.5"], ["2"], "decimal128(18, 1)", ["2.0"]),
    ("json", ["1.5"], ["null"], "double", [None]),
    ("json", ['{"x":1.5}'], ['{"x":2}'], "struct<x: double>", [{"x": 2.0}]),
    ("json", ['{"x":1,"y":2}'], ['{"x":1}'], "struct<x: int64, y: int64>", [{"x": 1, "y": None}]),
    ("json", ["[1.5]"], ["[2]"], "list<element: double>", [[2.0]]),
    ("json", ["[1]"], ["[]"], "list<element: int64>", [[]]),
    ("json", ['{"x":1}'], ["{}"], "struct<x: int64>", [{"x": None}]),
    ("csv", ["1.5"], ["2"], "double", [2.0]),
    ("csv", ["a"], ["2"], "string", ["2"]),
    ("csv", ["3000000000"], ["2"], "int64", [2]),
    ("csv", ["2026-01-31T10:00:00Z"], ["2026-02-01"], "timestamp[us, tz=UTC]", ["2026-02-01 00:00:00+00:00"]),
    ("csv", ["true"], ["false"], "bool", [False]),
    ("csv", ["1"], [""], "int32", [None]),
]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("place", in_turn(*PLACES))
@pytest.mark.parametrize(("kind", "first", "second", "expected", "values"), SAME, ids=range(len(SAME)))
def test_values_that_fit_have_the_type_of_before(local, place, kind, first, second, expected, values):
    lines = doc if kind == "json" else str
    own = Values(local, place)
    for job, texts in (("a", first), ("b", second)):
        result = own.load(job, kind, *map(lines, texts))
        assert result.status == "done", result.message
    assert own.list_kinds() == [expected, expected]
    assert all(str(value) in list(map(str, own.read())) for value in values)


REFUSED = [
    # format, the values of two loads, the type of the first, that of both, and the column of the message
    ("json", "1", "1.5", "bigint", "double", "v"),
    ("json", "9007199254740993", "1.5", "bigint", "decimal(20,1)", "v"),
    ("json", "1", '"a"', "bigint", "string", "v"),
    ("json", "1", "true", "bigint", "string", "v"),
    ("json", "1", "-0", "bigint", "double", "v"),
    ("json", "1.5", "9007199254740993", "double", "string", "v"),
    ("json", "1.5", "12345678901234567.5", "double", "string", "v"),
    ("json", "1", '{"x":1}', "bigint", "string", "v"),
    ("json", "true", "1", "boolean", "string", "v"),
    ("json", '{"x":1}', '{"x":1.5}', "bigint", "struct<x:double>", "v.x"),
    ("json", "[1]", "[1.5]", "bigint", "array<double>", "v.element"),
    ("json", '{"x":1}', "5", "struct<x:bigint>", "string", "v"),
    ("json", '[{"x":1}]', '[{"x":"a"}]', "bigint", "array<struct<x:string>>", "v.element.x"),
    ("csv", "1", "1.5", "int", "double", "v"),
    ("csv", "1", "a", "int", "string", "v"),
    ("csv", "1", "007", "int", "string", "v"),
    ("csv", "2026-01-31", "2026-02-01T10:00:00Z", "date", "timestamp", "v"),
    ("csv", "2026-01-31", "x", "date", "string", "v"),
    ("csv", "1234567890123456789", "1.5", "bigint", "string", "v"),
    ("csv", "true", "1", "boolean", "string", "v"),
]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("place", in_turn(*PLACES))
@pytest.mark.parametrize(("kind", "first", "second", "before", "both", "path"), REFUSED, ids=range(len(REFUSED)))
def test_values_that_do_not_fit_are_refused_with_a_type_that_takes_all(
    local, place, kind, first, second, before, both, path
):
    lines = doc if kind == "json" else str
    own = Values(local, place)
    assert own.load("a", kind, lines(first)).status == "done"
    objects = local.data()
    result = own.load("b", kind, lines(second))
    assert (result.status, result.code) == ("failed", "SCHEMA_INCOMPATIBLE"), result.message
    assert f"column {path!r} is {before} in the table's files" in str(result.message)
    assert local.data() == objects
    # The remedy: a new table with the line, and the sources of the older files as well.
    line = yaml.safe_load(need(re.search(r"columns: \{.*?\}(?=[,.] )", str(result.remedy)))[0])
    assert line == {"columns": {"v": both}}
    own.table = "others"
    for job, text in (("c", first), ("d", second)):
        result = own.load(job, kind, lines(text), **line)
        assert result.status == "done", result.message
    assert len(set(own.list_kinds())) == 1


BAD = [
    # format, the value of the first load, those of the second, the good ones of these, the file's type
    ("json", "1", ["2", "1.5", '"2"', "true", "3"], [1, 2, 3], "int64"),
    ("json", "1.5", ["2", "9007199254740993", '"2"'], [1.5, 2.0], "double"),
    ("json", '{"x":1.5}', ['{"x":2}', '{"x":9007199254740993}', "5"], [{"x": 1.5}, {"x": 2.0}], "struct<x: double>"),
    ("json", "[1]", ["[2]", "[1.5]", '["2"]'], [[1], [2]], "list<element: int64>"),
    ("csv", "1", ["2", "1.5", "007", "a"], [1, 2], "int32"),
    ("csv", "true", ["yes", "false", "1"], [False, True], "bool"),
    ("csv", "1.5", ["2", "00.5", "12345678901234567"], [1.5, 2.0], "double"),
]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("place", in_turn(*PLACES))
@pytest.mark.parametrize(("kind", "first", "second", "good", "expected"), BAD, ids=range(len(BAD)))
def test_values_that_do_not_fit_are_bad_rows(local, place, kind, first, second, good, expected):
    lines, rule = doc if kind == "json" else str, {"on_bad_row": {"action": "quarantine", "at_most": 1.0}}
    own = Values(local, place)
    assert own.load("a", kind, lines(first), **rule).status == "done"
    result = own.load("b", kind, *map(lines, second), **rule)
    assert result.status == "done", result.message
    assert result.set_aside is not None
    assert result.set_aside.rows == len(second) + 1 - len(good)
    assert (own.list_kinds(), own.read()) == ([expected, expected], sorted(good, key=str))


@pytest.mark.parametrize("place", in_turn(*PLACES))
def test_integers_become_longer(local, place):
    own = Values(local, place)
    for job, value in (("a", "1"), ("b", "3000000000"), ("c", "2")):
        assert own.load(job, "csv", value).status == "done"
    assert own.list_kinds() == ["int32", "int64", "int64"]


def test_decimals_grow_where_readers_take_them(local):
    own = Values(local, "iceberg")
    for job, value in (("a", "12345678901234567.5"), ("b", "1234567890123456789.5")):
        result = own.load(job, "json", doc(value))
        assert result.status == "done", result.message
    assert own.list_kinds() == ["decimal128(18, 1)", "decimal128(20, 1)"]
    own = Values(local, "files")
    own.table = "others"
    assert own.load("c", "json", doc("12345678901234567.5")).status == "done"
    result = own.load("d", "json", doc("1234567890123456789.5"))
    assert result.code == "SCHEMA_INCOMPATIBLE"
    assert 'columns: {v: "decimal(20,1)"}' in str(result.remedy)


NO_TYPE = [
    # format, a value without a type, the count of what is left out, the value that gives the type
    ("json", "null", {}, "1", "int64"),
    ("json", "[]", {"v": 1}, "[1]", "list<element: int64>"),
    ("json", "[null]", {"v": 1}, "[1]", "list<element: int64>"),
    ("json", "{}", {"v": 1}, '{"x":1}', "struct<x: int64>"),
    ("json", '{"x":null}', {"v": 1}, '{"x":1}', "struct<x: int64>"),
    ("json", '{"y":1,"x":[]}', {"v.x": 1}, '{"y":1,"x":[1]}', "struct<y: int64, x: list<element: int64>>"),
    ("json", '[{"y":1,"x":{}},{"y":1}]', {"v.element.x": 1}, '[{"y":1}]', "list<element: struct<y: int64>>"),
    ("csv", "", {}, "1", "int32"),
]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("place", in_turn(*PLACES))
@pytest.mark.parametrize(("kind", "first", "counted", "second", "expected"), NO_TYPE, ids=range(len(NO_TYPE)))
def test_what_has_no_value_has_no_type(local, place, kind, first, counted, second, expected):
    lines = doc if kind == "json" else str
    own = Values(local, place)
    result = own.load("a", kind, lines(first))
    assert (result.status, result.undeclared) == ("done", counted), result.message
    assert [note for note in result.notes if "no type yet" in note] == [
        f"column {path!r} has only null, [] and {{}}, and no type yet: left out and counted" for path in counted
    ]
    result = own.load("b", kind, lines(second))
    assert result.status == "done", result.message
    assert expected in own.list_kinds()


UNTYPED = "no row gives 'id', 'v' a type: the first load with rows makes the table"


@pytest.mark.parametrize("place", in_turn(*PLACES))
def test_a_header_alone_makes_no_table(local, place):
    own = Values(local, place)
    for job in "ab":
        result = own.load(job, "csv")
        assert (result.status, result.rows, UNTYPED in result.notes, own.state.types) == ("done", 0, True, None)
    own.undo("a")
    assert own.load("c", "csv", "1").status == "done"
    result = own.load("d", "csv", "2000000000000")
    assert (result.status, own.list_kinds()) == ("done", ["int32", "int64"]), result.message
    result = own.load("e", "csv")
    assert (result.status, [note for note in result.notes if "type" in note]) == ("done", [])
    assert [column.type for column in own.state.types or ()] == ["int", "bigint"]
    # A header with one more column than the table has.
    read = {"format": "csv", "path": "f.csv", "options": {"header": "true", "inferSchema": "true"}}
    local.csv("f.csv", "id,v,more\n")
    local.write({"table": "values", "schema": "public", "read": read}, **PLACES[place])
    assert local.load("f").tables[0].status == "done"
    local.csv("f.csv", "id,v,more\n1,2,3\n")
    assert local.load("g").tables[0].status == "done"
    assert own.list_kinds("more") == ["-", "-", "int32"]


KEYED: list[tuple[str, dict[str, Any], str]] = [
    # the catalog, the entry's own keys, the type of the values once there are some
    ("none", {}, "bigint"),
    ("glue", {}, "bigint"),
    ("iceberg", {}, "bigint"),
    ("iceberg", {"mode": "merge", "primary_key": ["id"], "order_by": ["v"]}, "bigint"),
]


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("catalog", "fields", "kind"), KEYED, ids=range(len(KEYED)))
def test_a_header_alone_has_keys_and_gives_no_type(tmp_path, aws, bucket, catalog, fields, kind):
    """Without a mode of its own the table is refreshed: a refresh of one in Iceberg keeps the columns of before."""
    read = {"format": "csv", "path": "users", "options": {"header": "true", "inferSchema": "true"}}
    own = Refreshed(tmp_path, aws, catalog, read=read, **fields)
    (tmp_path / "users").mkdir()
    for job, line, types in (("a", "", []), ("b", "1,2000000000000\n", ["int", kind]), ("c", "", None)):
        (tmp_path / "users" / "0.csv").write_text(f"id,v\n{line}")
        report = own.run(job)
        assert report.status == "done", report.tables
        found = [column.type for column in own.state.types or ()]
        assert types is None or found == types
        assert own.differences() == []


def test_a_column_of_nulls_can_be_declared(local):
    own = Values(local)
    assert own.load("a", "json", doc("null"), columns={"v": "date"}).status == "done"
    assert own.list_kinds() == ["date32[day]"]


@pytest.mark.parametrize("place", in_turn(*PLACES))
def test_a_declared_type_is_not_put_beside_an_inferred_one(local, place):
    own = Values(local, place)
    assert own.load("a", "json", doc("1")).status == "done"
    result = own.load("b", "json", doc("1.5"), columns={"v": "double"})
    assert (result.code, own.list_kinds()) == ("SCHEMA_INCOMPATIBLE", ["int64"])
    assert "Load into a new table" in str(result.remedy)
    assert own.load("c", "json", doc("2"), columns={"v": "bigint"}).status == "done"


def test_types_of_columns_that_are_declared_are_not_kept(local):
    own = Values(local)
    assert own.load("a", "json", doc("1"), columns={"v": "double"}).status == "done"
    assert [column.name for column in own.state.types or ()] == ["id"]


def test_files_of_text_have_no_types(local):
    """Readers take the types of JSON and CSV from all of its values."""
    base = {"type": "lakewriter-s3", "location": f"s3://{BUCKET}/text", "region": "us-east-1", "format": "jsonl"}
    for job, value in (("a", "1"), ("b", "1.5")):
        (local.folder / "v.json").write_text(doc(value), "utf-8")
        own = {"table": "values", "schema": "public", "read": {"format": "json", "path": "v.json"}}
        local.file.write_text(yaml.safe_dump({"pipeline": "p", "destination": base, "tables": [own]}), "utf-8")
        (result,) = local.load(job).tables
        assert result.status == "done", result.message


def test_the_state_keeps_types_by_their_names_in_the_source(local):
    own = Values(local)
    assert own.load("a", "json", '{"A b":{"C d":[1.5]},"n":null,"big":9007199254740993}').status == "done"
    assert [json.loads(column.model_dump_json()) for column in own.state.types or ()] == [
        {"name": "A b", "type": "struct", "load": "a", "fields": [
            {"name": "C d", "type": "array", "fields": [{"name": "element", "type": "double"}]}]},
        {"name": "big", "type": "bigint", "beyond_double": True, "load": "a"},
    ]  # fmt: skip
    assert own.load("b", "json", '{"A b":{"C d":[2]}}').status == "done"
    assert [column.load for column in own.state.types or ()] == ["", "a"]
    assert own.list_kinds("A_b") == ["struct<C_d: list<element: double>>"] * 2


def test_names_that_differ_by_case_are_one_column(local):
    own = Values(local)
    assert own.load("a", "json", '{"V":1.5,"s":{"X":1.5}}').status == "done"
    assert own.load("b", "json", '{"v":2,"s":{"x":2}}').status == "done"
    assert (own.list_kinds("V"), own.list_kinds("s")) == (["double"] * 2, ["struct<X: double>"] * 2)


def forget(own: Values, **fields: Any) -> None:
    """Make the state what an earlier release has left."""
    own.control.state.move(Edit(types=None, **fields))


@pytest.mark.parametrize("place", in_turn(*PLACES))
def test_a_state_without_types_goes_by_the_last_file_or_the_catalog(local, place):
    own = Values(local, place)
    first = '{"v":1.5,"A b":{"C d":[1.5]},"n":1}'
    assert own.load("a", "json", first).status == "done"
    forget(own)
    result = own.load("b", "json", '{"v":2,"A b":{"C d":[2]},"n":1.5}')
    assert result.code == "SCHEMA_INCOMPATIBLE"
    assert "column 'n' is bigint in the table's files" in str(result.message)
    assert own.load("c", "json", '{"v":2,"A b":{"C d":[2]}}').status == "done"
    assert own.list_kinds() == ["double", "double"]
    assert [column.type for column in own.state.types or ()] == ["struct", "double"]


def test_a_map_of_the_catalog_is_known(local):
    own, kind = Values(local, "glue"), "map<string,double>"
    assert own.load("a", "json", doc('{"x":1.5}'), columns={"v": kind}).status == "done"
    result = own.load("b", "json", doc('{"x":2}'))
    assert (result.code, own.list_kinds()) == ("SCHEMA_INCOMPATIBLE", ["map<string, double ('v')>"])
    assert "map<string,double> in the table's files" in str(result.message)
    assert own.load("c", "json", doc('{"x":2}'), columns={"v": kind}).status == "done"


def test_a_state_without_types_gets_them_again(local):
    own = Values(local)
    assert own.load("a", "json", doc("1.5")).status == "done"
    forget(own, names=None)
    assert own.load("b", "json", doc("2")).status == "done"
    assert own.list_kinds() == ["double", "double"]
    assert [(column.name, column.type) for column in need(own.state.types)] == [("id", "bigint"), ("v", "double")]


def test_an_undo_forgets_the_types_of_its_load_alone(local):
    own = Values(local)
    assert own.load("a", "json", doc("1")).status == "done"
    own.undo("a")
    assert not own.state.types
    assert own.load("b", "json", doc("1.5")).status == "done"
    assert own.load("c", "json", '{"v":2,"w":1}').status == "done"
    own.undo("c")
    assert [(column.name, column.type) for column in own.state.types or ()] == [("id", "bigint"), ("v", "double")]
    assert own.load("d", "json", '{"v":3,"w":1.5}').status == "done"
    own.undo("b")
    assert own.load("e", "json", doc('"a"')).code == "SCHEMA_INCOMPATIBLE"


@pytest.mark.parametrize("place", ["glue", "iceberg"])
def test_a_catalog_keeps_its_columns_after_an_undo(local, place):
    own = Values(local, place)
    assert own.load("a", "json", doc("1.5")).status == "done"
    own.undo("a")
    assert own.load("b", "json", doc("2")).status == "done"
    assert set(own.list_kinds()) == {"double"}


@pytest.mark.parametrize(
    ("catalog", "kinds"),
    [("none", ["bigint", "double", "bigint"]), ("glue", ["bigint", "double", "bigint"]),
     ("iceberg", ["double", "double", "double"])],
    ids=["files", "glue", "iceberg"],
)  # fmt: skip
def test_a_full_refresh_begins_anew_unless_the_catalog_keeps_its_columns(tmp_path, aws, bucket, catalog, kinds):
    first = "1" if catalog != "iceberg" else "0.5"
    own = Refreshed(tmp_path, aws, catalog, read={"format": "json", "path": "users"})
    (tmp_path / "users").mkdir()
    for job, value, kind in zip("abc", (first, "1.5", "2"), kinds, strict=True):
        (tmp_path / "users" / "0.json").write_text(doc(value), "utf-8")
        assert own.run(job).status == "done"
        assert [column.type for column in own.state.types if column.name == "v"] == [kind]


@pytest.mark.parametrize(
    ("catalog", "kinds"),
    [("none", ["bigint", "double", "bigint"]), ("glue", ["bigint", "double", "bigint"])],
    ids=["files", "glue"],
)
def test_an_undo_of_a_full_refresh_brings_the_types_of_before_back(tmp_path, aws, bucket, catalog, kinds):
    """Without them the next load of a table that is appended to might give a column of the older files another type."""
    own = Refreshed(tmp_path, aws, catalog, read={"format": "json", "path": "users"})
    (tmp_path / "users").mkdir()
    seen = []
    for job, value in zip("ab", ("1", "1.5"), strict=True):
        (tmp_path / "users" / "0.json").write_text(doc(value), "utf-8")
        assert own.run(job).status == "done"
        seen += [column.type for column in own.state.types if column.name == "v"]
    own.undo("b").run()
    assert [*seen, *(column.type for column in own.state.types or () if column.name == "v")] == kinds


@pytest.mark.parametrize("place", in_turn(*PLACES))
@pytest.mark.parametrize("second", ["1.5", "2"], ids=["another type", "the same type"])
def test_two_loads_at_once(local, place, second):
    """The one that binds last is compared with the types of the other."""
    own, ran = Values(local, place), list[Any]()
    assert own.load("a", "json", '{"id":1}').status == "done"
    (local.folder / "other.json").write_text(doc("1"), "utf-8")
    (local.folder / "b.json").write_text(doc(second), "utf-8")

    def write(path: str) -> None:
        read = {"format": "json", "path": path}
        local.write({"table": "values", "schema": "public", "read": read}, **PLACES[place])

    def progress(_table: Any, step: str, _detail: str) -> None:
        if step == "writing" and not ran:
            ran.append(None)
            write("other.json")
            ran[:] = local.load("other").tables

    write("b.json")
    (result,) = local.load("b", progress=progress).tables
    assert ran[0].status == "done", ran[0].message
    if place == "iceberg" and second != "2":
        # Its columns are made before files are written: the other load has found a double.
        assert (result.status, own.list_kinds()) == ("done", ["-", "double", "double"])
        return
    if second == "2":
        assert (result.status, own.list_kinds()) == ("done", ["-", "int64", "int64"])
        return
    assert (result.code, own.list_kinds()) == ("CONCURRENT_LOAD", ["-", "int64"])
    assert own.load("b", "json", doc(second)).code == "SCHEMA_INCOMPATIBLE"


def test_a_lost_state_is_rebuilt_with_its_types(local):
    own = Values(local)
    assert own.load("a", "json", doc("1.5")).status == "done"
    before = own.state.types
    local.aws.client("s3").delete_object(Bucket=BUCKET, Key=own.control.keys.state(own.control.table_id))
    (entry,) = local.spec.tables
    rebuild(own.control, entry, InCatalog(), "a drill", None, from_start=True)
    assert own.state.types == before
    assert own.load("b", "json", doc("2")).status == "done"
    assert own.list_kinds() == ["double", "double"]


@pytest.mark.spark
@pytest.mark.parametrize("place", in_turn(*PLACES))
def test_a_statement_over_files_is_compared(lake, place):
    own = Values(lake, place)
    for job, content, code in (
        ("a", doc("1"), None),
        ("b", doc("2"), None),
        ("c", doc("1.5"), "SCHEMA_INCOMPATIBLE"),
    ):
        (lake.folder / "v.json").write_text(content, "utf-8")
        read = {"sql": "SELECT * FROM f", "views": {"f": {"format": "json", "path": "v.json"}}}
        lake.write({"table": "values", "schema": "public", "read": read}, **PLACES[place])
        (result,) = lake.load(job).tables
        assert result.code == code, result.message
    assert own.list_kinds() == ["int64", "int64"]


@pytest.mark.spark
def test_rows_that_spark_judges_have_the_types_of_before(lake):
    own = Values(lake)
    for job, value in (("a", "1.5"), ("b", "2")):
        result = own.load(job, "json", doc(value), '{"id":2,"v":null,"e":[]}', deleted="id + 1 = 4")
        assert (result.status, result.feed, result.undeclared) == ("done", "rows", {"e": 1}), result.message
    assert own.list_kinds() == ["double", "double"]


def test_a_type_that_is_too_long_for_glue_is_refused_before_anything_is_written(local):
    own, content = Values(local, "glue"), {f"m{number:0150}": 1.5 for number in range(1000)}
    result = own.load("a", "json", doc(json.dumps(content)))
    assert (result.code, local.data()) == ("SCHEMA_INCOMPATIBLE", {})
    assert "column 'v' has a type of 159,007 characters in Glue's words" in str(result.message)
    assert own.load("b", "json", doc(json.dumps(content)), columns={"v": "string"}).status == "done"
    assert len(json.loads(own.read()[0])) == 1000
