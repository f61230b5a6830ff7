"""A column's values stay under the name that the table has given it, in whatever order other columns come beside it.

Each case: load a of one file, load b of another one with a column more, whose own name collides. Expected names are
those of docs/guide-supaflow.md, "Names", and of docs/adr/0036-names-stay-with-their-columns.md.
"""

import json
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from lakewriter.aws import Clients
from lakewriter.cli.main import main
from lakewriter.commit.iceberg.iceberg_catalogs import open_catalog
from lakewriter.commit.pipeline import Pipeline
from lakewriter.naming import ControlKeys
from lakewriter.operate.planning import plan
from lakewriter.operate.rebuild import ask_catalog, rebuild
from lakewriter.operate.repair import reset_cursor, reset_files
from lakewriter.report import TableResult
from lakewriter.run.loader import load as run_load
from lakewriter.spec.catalogs import GlueService
from tests.load.lakes import BUCKET, PREFIX
from tests.load.syncs import SyncLake, catalog, read, record, stream

pytestmark = pytest.mark.spark

FIRST = "id,name\n1,Ann\n"
SECOND = "NAME,id,name\nnew,2,Ben\n"
TABLES: dict[str, tuple[dict[str, Any], str]] = {
    # destinations, and the folder of the table's files
    "supaflow": ({"type": "supaflow-s3", "s3_bucket_name": BUCKET, "bucket_region": "us-east-1",
                  "s3_path_prefix": PREFIX}, "public/people/"),
    "glue": ({"type": "lakewriter-s3", "catalog": "glue", "location": f"s3://{BUCKET}/{PREFIX}",
              "region": "us-east-1"}, "public/people/"),
    "csv": ({"type": "lakewriter-s3", "format": "csv", "location": f"s3://{BUCKET}/{PREFIX}",
             "region": "us-east-1"}, "public/people/"),
    "avro": ({"type": "lakewriter-s3", "format": "avro", "location": f"s3://{BUCKET}/{PREFIX}",
              "region": "us-east-1"}, "public/people/"),
    "jsonl, kept": ({"type": "lakewriter-s3", "format": "jsonl", "column_names": "kept",
                     "location": f"s3://{BUCKET}/{PREFIX}", "region": "us-east-1"}, "public/people/"),
}  # fmt: skip


class People:
    """A pipeline of one table, whose file is replaced between its loads."""

    def __init__(self, lake: Any) -> None:
        self.lake = lake

    def write(self, destination: dict[str, Any], **entry: Any) -> None:
        self.content = {"pipeline": "flights", "destination": destination}
        self.table = {"table": "People", "schema": "public"} | entry

    def _read_from(self, name: str, text: str) -> Any:
        read_ = {"format": "csv", "path": self.lake.csv(name, text), "options": {"header": "true"}}
        content = self.content | {"tables": [self.table | {"read": read_}]}
        self.lake.file.write_text(yaml.safe_dump(content, allow_unicode=True), "utf-8")
        return self.lake.spec

    def load(
        self, job_id: str, text: str, *, before_table: Callable[[], None] | None = None, **options: Any
    ) -> TableResult:
        """Load ``text``; ``before_table`` is called before each look at the table in Glue."""
        spec = self._read_from(f"{job_id}.csv", text)
        spark = self.lake._spark
        clients = Clients(spec.access)
        if before_table is not None:
            clients.glue.meta.events.register("before-call.glue.GetTable", lambda **_: before_table())
        report = run_load(spec, job_id=job_id, clients=clients, spark=lambda: spark, **options)
        (result,) = report.tables
        return result

    def plan(self, text: str) -> Any:
        spec = self._read_from("plan.csv", text)
        controls = {table.id: self.lake.control(table.id) for table in spec.tables}
        (planned,) = plan(
            spec, job_id="p", clients=Clients(spec.access), spark=lambda: self.lake._spark, controls=controls
        )
        return planned

    def rows(self, folder: str = "public/people/") -> list[dict[str, Any]]:
        """The rows without tracking columns and nulls."""
        rows = [row for key, body in self.lake.data().items() if key.startswith(folder) for row in read(key, body)]
        return [{k: str(v) for k, v in row.items() if k[0] != "_" and v not in (None, "")} for row in rows]

    @property
    def state(self) -> Any:
        return self.lake.control("public.people").state.read()

    def forget_names(self) -> None:
        """The state as an earlier release left it."""
        key = ControlKeys(PREFIX, "flights").state("public.people")
        content = json.loads(self.lake.aws.objects(BUCKET)[key])
        del content["names"]
        self.lake.aws.client("s3").put_object(Bucket=BUCKET, Key=key, Body=json.dumps(content).encode())


@pytest.fixture
def people(lake) -> People:
    return People(lake)


def delete(lake, prefix: str) -> None:
    s3 = lake.aws.client("s3")
    for key in [key for key in lake.aws.objects(BUCKET) if key.startswith(prefix)]:
        s3.delete_object(Bucket=BUCKET, Key=key)


DEATHS = {
    # the call at which a first load without rows dies, once the table is in Glue
    "while it is published": lambda call: call.action == "glue:GetTable",
    "before its report": lambda call: call.method == "PUT" and call.key.endswith(".report.json"),
    "not at all": None,
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("lost", ["the state", "the control folder"])
@pytest.mark.parametrize("death", DEATHS)
def test_names_of_a_table_that_nothing_was_committed_to_do_not_bind(people, death, lost):
    """Its columns in Glue fit two columns of the source each, and no record says which is which."""
    people.write(TABLES["glue"][0])
    spec = people._read_from("a.csv", "id,name,NAME\n")
    if DEATHS[death] is None:
        assert people.load("a", "id,name,NAME\n").message is None
    else:
        # Glue is asked before the load, before the table is made, and then for what was made.
        people.lake.cut_off("a", DEATHS[death], after=2 if death == "while it is published" else 0)
    assert people.lake.aws.client("glue").get_tables(DatabaseName="public")["TableList"]
    delete(people.lake, f"{PREFIX}/_lakewriter/flights/{'tables/' if lost == 'the state' else ''}")
    if lost == "the state":
        clients = Clients(spec.access)
        control, table = Pipeline.open(spec, clients).first_control, spec.tables[0]
        rebuild(control, table, ask_catalog(spec, table, clients), "lost", None, from_start=False)
        reset_files(control, (), "the record of them is lost too")
    is_known = death == "not at all" and lost == "the state"
    assert people.load("b", "id,NAME,name\n2,new,Ben\n").message is None
    names = {"NAME_1": "new", "name": "Ben"} if is_known else {"NAME": "new", "name_1": "Ben"}
    assert people.rows() == [{"id": "2"} | names]


def test_names_of_a_table_with_files_bind(people):
    """Whoever wrote them."""
    people.write(TABLES["glue"][0])
    assert people.load("a", "id,name,NAME\n1,Ann,old\n").message is None
    for key, body in people.lake.aws.objects(BUCKET).items():
        delete(people.lake, key)
        if "/_lakewriter/" not in key:
            # Without the metadata that tells ours.
            people.lake.aws.client("s3").put_object(Bucket=BUCKET, Key=key, Body=body)
    assert "no record says which" in people.load("b", "id,NAME,name\n2,new,Ben\n").message


COLUMNS = [
    # the columns of two loads, the row of the second
    ("id,name", "NAME,id,name", {"NAME_1": "new", "id": "2", "name": "Ben"}),
    ("id,first name", "First-Name,id,first name", {"First_Name_1": "new", "id": "2", "first_name": "Ben"}),
    ("id,é", "e,id,é", {"e_1": "new", "id": "2", "e": "Ben"}),
]


@pytest.mark.parametrize(("first", "second", "row"), COLUMNS)
def test_names_stay(people, first, second, row):
    people.write(TABLES["supaflow"][0])
    assert people.load("a", f"{first}\n1,Ann\n").message is None
    assert people.load("b", f"{second}\nnew,2,Ben\n").message is None
    assert row in people.rows()


NAMELESS = [
    # the headers of two loads, the row of the second: a column without a name is found by its order among such columns
    ("id,", "new,id,", {"new": "1", "id": "2", "_c1": "3"}),
    ("id,,", "new,id,,", {"new": "1", "id": "2", "_c1": "3", "_c2": "4"}),
    ("id,,b,", "id,b,,x,", {"id": "1", "b": "2", "_c1": "3", "x": "4", "_c3": "5"}),
    ("id,,_c1", "new,id,,_c1", {"new": "1", "id": "2", "_c1": "3", "_c1_1": "4"}),
    ("id,_c1", "new,id,_c1", {"new": "1", "id": "2", "_c1": "3"}),
]


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("first", "second", "row"), NAMELESS)
def test_columns_without_a_name_keep_theirs(people, first, second, row):
    people.write(TABLES["supaflow"][0])
    assert people.load("a", f"{first}\n{','.join('x' * len(first.split(',')))}\n").message is None
    text = f"{second}\n{','.join(map(str, range(1, len(row) + 1)))}\n"
    assert people.load("b", text).message is None
    # A third load finds the names of the first, whatever the second's columns would be called by themselves.
    assert people.load("c", text).message is None
    rows = [entry for key, body in people.lake.data().items() for entry in read(key, body)]
    plain = [{k: v for k, v in entry.items() if k[:5] != "_supa" and v is not None} for entry in rows]
    assert [entry for entry in plain if entry != {} and "x" not in entry.values()] == [row, row]


@pytest.mark.parametrize("kind", [kind for kind in TABLES if kind != "supaflow"])
def test_names_stay_in_every_format(people, kind):
    destination, folder = TABLES[kind]
    people.write(destination)
    assert people.load("a", FIRST).message is None
    assert people.load("b", SECOND).message is None
    assert people.rows(folder) == [{"id": "1", "name": "Ann"}, {"NAME_1": "new", "id": "2", "name": "Ben"}]


def test_names_stay_in_iceberg(people):
    base = {"type": "lakewriter-s3", "catalog": "iceberg", "location": f"s3://{BUCKET}/{PREFIX}", "region": "us-east-1"}
    people.write(base)
    people.load("a", FIRST)
    assert people.load("b", SECOND).message is None
    table = open_catalog(GlueService(), Clients(people.lake.spec.access), "t", []).load_table(("public", "people"))
    rows = table.scan().select("id", "name", "NAME_1").to_arrow().sort_by("id").to_pylist()
    assert rows == [{"id": "1", "name": "Ann", "NAME_1": None}, {"id": "2", "name": "Ben", "NAME_1": "new"}]


@pytest.mark.parametrize("kind", ["glue", "jsonl, kept"])
def test_column_that_the_source_has_renamed_goes_on(people, kind):
    people.write(TABLES[kind][0])
    people.load("a", FIRST)
    people.write(TABLES[kind][0], names={"full_name": "name"})
    assert people.load("b", "full_name,id\nBen,2\n").message is None
    # The record has it from now on.
    people.write(TABLES[kind][0])
    assert people.load("c", "full_name,id\nCec,3\n").message is None
    rows = sorted(people.rows(), key=lambda row: row["id"])
    assert rows == [{"id": "1", "name": "Ann"}, {"id": "2", "name": "Ben"}, {"id": "3", "name": "Cec"}]
    assert people.load("d", "name,full_name,id\nD,Dan,4\n").code == "NAME_COLLISION"


def test_plan_shows_which_column_has_which_name(people):
    people.write(TABLES["supaflow"][0])
    people.load("a", FIRST)
    columns = [(column.source, column.name) for column in people.plan(SECOND).columns if column.source]
    assert columns == [("NAME", "NAME_1"), ("id", "id"), ("name", "name")]


def test_names_of_a_load_that_failed_do_not_count(people):
    people.write(TABLES["supaflow"][0], expect=[{"rows": {"at_least": 5}}])
    assert people.load("a", FIRST).code == "EXPECTATION_FAILED"
    assert people.state.names is None
    people.write(TABLES["supaflow"][0])
    people.load("b", SECOND)
    assert people.rows() == [{"NAME": "new", "id": "2", "name_1": "Ben"}]


def test_names_stay_after_an_undo_and_a_reset(people):
    people.write(TABLES["supaflow"][0])
    people.load("a", FIRST)
    before = people.state.names
    result = CliRunner().invoke(main, ["undo", str(people.lake.file), "a", "--reason", "r"])
    assert result.exit_code == 0, result.output
    reset_cursor(people.lake.control("public.people"), None, "r")
    assert people.state.names == before
    people.load("b", SECOND)
    assert people.rows() == [{"NAME_1": "new", "id": "2", "name": "Ben"}]


def test_a_state_that_is_rebuilt_has_the_names(people):
    people.write(TABLES["supaflow"][0])
    people.load("a", FIRST)
    before = people.state.names
    key = ControlKeys(PREFIX, "flights").state("public.people")
    people.lake.aws.client("s3").delete_object(Bucket=BUCKET, Key=key)
    result = CliRunner().invoke(main, ["rebuild", str(people.lake.file), "public.people", "--reason", "r"])
    assert result.exit_code == 0, result.output
    assert people.state.names == before


def test_a_table_whose_names_are_not_known(people):
    """One column fits: it has the name. Two fit: neither gets it before lake.yaml says which."""
    people.write(TABLES["supaflow"][0])
    people.load("a", FIRST)
    people.forget_names()
    failed = people.load("b", SECOND)
    assert failed.code == "NAME_COLLISION"
    assert failed.remedy == 'Say which has which: names: {"NAME": "NAME", "name": "name_1"}'
    assert people.plan(SECOND).error.startswith("NAME_COLLISION: ")
    people.write(TABLES["supaflow"][0], names={"name": "name", "NAME": "NAME_1"})
    assert people.load("b", SECOND).message is None
    people.write(TABLES["supaflow"][0])
    people.load("c", SECOND)
    assert people.rows() == [{"id": "1", "name": "Ann"}, *[{"NAME_1": "new", "id": "2", "name": "Ben"}] * 2]


def test_a_table_whose_names_are_not_known_with_its_own_columns(people):
    """A load gives them again, from the catalog's."""
    people.write(TABLES["supaflow"][0])
    people.load("a", FIRST)
    names = people.state.names
    people.forget_names()
    assert people.load("b", FIRST).message is None
    assert people.state.names == names


def test_a_full_refresh_of_a_table_whose_names_are_not_known(people):
    destination = {"type": "lakewriter-s3", "location": f"s3://{BUCKET}/{PREFIX}", "region": "us-east-1"}
    people.write(destination, mode="refresh")
    people.load("a", FIRST)
    people.forget_names()
    assert people.load("b", SECOND).message is None
    assert people.load("c", "name,id,NAME\nBen,3,new\n").message is None
    assert people.rows()[-1] == {"name_1": "Ben", "id": "3", "NAME": "new"}


def test_two_loads_at_once_that_give_one_name(people):
    """The one that is bound second chose its names as of a table without the other's: it is run again."""
    people.write(TABLES["supaflow"][0])
    people.load("z", "id\n0\n")
    loads: list[TableResult] = []

    def load_meanwhile(_table: Any, step: str, _detail: str) -> None:
        if step == "writing" and not loads:
            loads.append(people.load("b", "id,a b\n1,x\n"))

    first = people.load("a", "id,a-b\n2,y\n", progress=load_meanwhile)
    assert (loads[0].code, first.code) == (None, "CONCURRENT_LOAD")
    assert people.load("a", "id,a-b\n2,y\n").message is None
    assert people.rows() == [{"id": "2", "a_b_1": "y"}, {"id": "1", "a_b": "x"}, {"id": "0"}]


def test_names_that_another_load_gives_between_state_and_catalog(people):
    """The catalog has a name then that the state, read before, does not have: it is no collision."""
    people.write(TABLES["glue"][0])
    loads: list[TableResult] = []

    def load_meanwhile() -> None:
        if not loads:
            loads.append(people.load("b", "id,a b\n1,x\n"))

    first = people.load("a", "id,a-b,a b\n2,y,z\n", before_table=load_meanwhile)
    assert (loads[0].code, first.code) == (None, "CONCURRENT_LOAD")
    assert people.load("a", "id,a-b,a b\n2,y,z\n").message is None
    assert people.rows() == [{"id": "2", "a_b_1": "y", "a_b": "z"}, {"id": "1", "a_b": "x"}]


NAMES = {"id": {"type": "integer"}, "first name": {"type": "string"}}
MORE = {"First-Name": {"type": "string"}, "first-name": {"type": "string"}}
USERS = {"type": "object", "properties": NAMES}
FORMS = [
    {"format": {"format_type": "Parquet"}},
    {"format": {"format_type": "Avro", "compression_codec": {"codec": "no compression"}}},
]


@pytest.mark.parametrize("form", FORMS, ids=["parquet", "avro"])
def test_names_of_streams_stay(tmp_path, aws, bucket, spark, form):
    syncs = SyncLake(tmp_path, aws, spark)
    for job_id, schema, data in [
        ("a", USERS, {"id": 1, "first name": "Ann"}),
        ("b", {"type": "object", "properties": MORE | NAMES},
         {"id": 2, "first name": "Ben", "first-name": "new"}),
    ]:  # fmt: skip
        messages = syncs.messages(record("users", data), name=f"{job_id}.jsonl")
        syncs.write(form, source={"messages": messages, "catalog": catalog(stream("users", schema))})
        (result,) = syncs.load(job_id).tables
        assert result.message is None
    rows = [{k: v for k, v in row.items() if k[0] != "_" and v is not None} for row in syncs.rows()]
    assert sorted(rows, key=lambda row: row["id"]) == [
        {"id": 1, "first_name": "Ann"},
        {"id": 2, "first_name": "Ben", "first_name_1": "new"},
    ]
