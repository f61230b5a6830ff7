"""Files that earlier loads have read: left out by ``files: new``, else counted, and never appended again in silence."""

import os
import re
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from lakewriter.aws import Clients
from lakewriter.cli.main import main
from lakewriter.commit.pipeline import Pipeline
from lakewriter.commit.retention import sweep
from lakewriter.operate import repair
from lakewriter.operate.planning import plan
from lakewriter.operate.undo import Undo
from lakewriter.operate.undo_plan import Choices
from lakewriter.report import describe_repeated
from lakewriter.run import chosen_files
from lakewriter.run.load import run
from lakewriter.source import file_listing as sources
from tests.commit.edits import Edit
from tests.load.lakes import BUCKET, PREFIX, Lake, completes
from tests.support.local_tasks import local_session

TABLE = "nyc_public/days"
ID = "nyc_public.days"


class Landing(Lake):
    """A folder into which a day's file is dropped, and the pipeline that loads it."""

    def drop(self, name: str, *ids: int, changed: bool = False) -> None:
        """A file of these ids. One that is changed is so a second later."""
        path = self.folder / "in" / name
        path.parent.mkdir(exist_ok=True)
        before = path.stat().st_mtime_ns if path.exists() else 0
        pq.write_table(pa.table({"id": pa.array(ids, pa.int64())}), path)
        if changed:
            os.utime(path, ns=(before + 1_000_000_000, before + 1_000_000_000))

    def describe(self, files: str = "new", repeated: str | None = None) -> None:
        read = {"format": "parquet", "path": "in", "files": files}
        entry = {"table": "days", "schema": "public", "read": read}
        self.write(entry | ({"repeated": repeated} if repeated else {}), update_aws_glue_catalog=False)

    def ids(self) -> list[int]:
        """All ids in the table, repeated ones as often as they are there."""
        if not any(key.startswith(TABLE) for key in self.data()):
            return []
        return [row[0] for row in self.rows("SELECT id FROM t ORDER BY id", TABLE)]

    def go(self, job_id: str, expected: str = "done"):
        """A load of the one table."""
        (result,) = self.load(job_id).tables
        assert result.status == expected, (result.code, result.message)
        return result

    def undo(self, job_id: str) -> None:
        Undo(Pipeline.open(self.spec, Clients(self.spec.access)), job_id, Choices("a drill")).run()


@pytest.fixture
def landing(tmp_path, aws, bucket) -> Landing:
    return Landing(tmp_path, aws, local_session(2))


def test_a_days_file_is_loaded_and_the_old_ones_are_not(landing):
    landing.describe()
    landing.drop("2024-01-01.parquet", 1, 2)
    assert landing.go("a").rows == 2
    landing.drop("2024-01-02.parquet", 3)
    result = landing.go("b")
    assert (result.rows, result.repeated.model_dump(exclude_defaults=True)) == (1, {"files": 1, "left_out": 1})
    assert describe_repeated([result.repeated]) is None
    assert landing.ids() == [1, 2, 3]


def test_nothing_new_is_a_load_without_rows(landing):
    landing.describe()
    landing.drop("1.parquet", 1)
    landing.go("a")
    assert [(result.rows, result.files) for result in (landing.go("b"), landing.go("c"))] == [(0, 0), (0, 0)]
    landing.drop("2.parquet", 2)
    assert landing.go("d").rows == 1
    assert landing.ids() == [1, 2]


def test_the_same_job_id_is_done(landing):
    """What came since is the next load's."""
    landing.describe()
    landing.drop("1.parquet", 1)
    landing.go("a")
    landing.drop("2.parquet", 2)
    assert landing.go("a", "already_done").rows == 1
    assert landing.go("b").rows == 1
    assert landing.ids() == [1, 2]


def test_a_load_that_failed_has_read_nothing(landing):
    landing.describe()
    landing.drop("1.parquet", 1)
    landing.go("a")
    landing.drop("2.parquet", 2)
    landing.aws.interceptors.append(deny := lambda call, proceed: call.denied() if completes(call) else proceed(call))
    landing.go("b", "failed")
    landing.aws.interceptors.remove(deny)
    # Its intent was bound: whoever comes next finishes it, and reads what is new beside it.
    landing.drop("3.parquet", 3)
    assert landing.go("c").rows == 1
    assert landing.ids() == [1, 2, 3]


def test_an_undo_gives_its_files_back(landing):
    landing.describe()
    for job, number in (("a", 1), ("b", 2), ("c", 3)):
        landing.drop(f"{number}.parquet", number)
        landing.go(job)
    landing.undo("b")
    assert landing.ids() == [1, 3]
    assert landing.go("b.r2").rows == 1
    assert landing.go("d").rows == 0
    assert landing.ids() == [1, 2, 3]


def test_a_changed_file_is_refused_or_comes_whole(landing):
    """Its old rows are in the table: only a person can say whether the new contents hold them again."""
    landing.describe()
    landing.drop("1.parquet", 1)
    landing.go("a")
    landing.drop("1.parquet", 1, 2, changed=True)
    result = landing.go("b", "failed")
    path = str(landing.folder / "in" / "1.parquet")
    assert (result.code, result.message) == (
        "INPUT_REPEATED",
        f"table '{ID}': 1 file changed since an earlier load has read them: {path}. Give what is new a name of its "
        "own; or load changed files whole, with repeated: warn; or undo the load that has read them.",
    )
    landing.describe(repeated="warn")
    result = landing.go("b")
    assert (result.rows, result.notes) == (2, ("1 file changed since an earlier load has read them, and come whole",))
    assert describe_repeated([result.repeated]) == "1 file changed since an earlier load has read them"
    assert landing.go("c").rows == 0
    assert landing.ids() == [1, 1, 2]


def test_a_file_that_is_replaced_while_it_is_read(landing, monkeypatch):
    landing.describe()
    landing.drop("1.parquet", 1)
    whole = sources.list_inputs

    def list_then_replace(read, table, spark):
        listed = whole(read, table, spark)
        landing.drop("1.parquet", 7, changed=True)
        return listed

    monkeypatch.setattr(sources, "list_inputs", list_then_replace)
    result = landing.go("a", "failed")
    assert (result.code, "1.parquet came or changed while the load read" in result.message) == ("CONCURRENT_LOAD", True)
    assert landing.ids() == []
    monkeypatch.setattr(sources, "list_inputs", whole)
    landing.go("a")
    assert landing.ids() == [7]


def test_a_file_that_comes_while_others_are_read_is_the_next_loads(landing, monkeypatch):
    landing.describe()
    landing.drop("1.parquet", 1)
    whole = sources.list_inputs

    def list_then_drop(read, table, spark):
        listed = whole(read, table, spark)
        landing.drop("2.parquet", 2)
        return listed

    monkeypatch.setattr(sources, "list_inputs", list_then_drop)
    assert landing.go("a").rows == 1
    monkeypatch.setattr(sources, "list_inputs", whole)
    assert landing.go("b").rows == 1
    assert landing.ids() == [1, 2]


@pytest.mark.parametrize(("files", "repeated"), [("new", None), ("all", "fail")])
def test_two_loads_at_once_read_a_file_once(landing, files, repeated):
    """The second one registers before the first is bound, and goes by the same files."""
    landing.describe(files, repeated)
    landing.drop("1.parquet", 1)
    begun: list[str] = []

    def progress(table, step, detail):
        if step == "writing" and not begun:
            begun.append(step)
            spec = landing.spec
            inner = run(spec, job_id="b", clients=Clients(spec.access), spark=lambda: local_session(2))
            begun.extend(result.status for result in inner.tables)

    (result,) = landing.load("a", progress=progress).tables
    assert (begun, result.code) == (["writing", "done"], "CONCURRENT_LOAD")
    (again,) = landing.load("a").tables
    assert (again.rows, again.code) == ((0, None) if files == "new" else (0, "INPUT_REPEATED"))
    assert landing.ids() == [1]


COUNTED = [
    # repeated, the second load's status and code, the summary's words, the ids in the table
    ("warn", "done", None, "appended again: 3 rows, 2 of 2 files that an earlier load has read", [1, 1, 2, 2, 3, 3]),
    ("allow", "done", None, None, [1, 1, 2, 2, 3, 3]),
    ("fail", "failed", "INPUT_REPEATED", None, [1, 2, 3]),
]


@pytest.mark.parametrize(("repeated", "status", "code", "said", "ids"), COUNTED)
def test_a_second_load_of_all_files(landing, repeated, status, code, said, ids):
    landing.describe("all", repeated)
    landing.drop("1.parquet", 1, 2)
    landing.drop("2.parquet", 3)
    assert describe_repeated([landing.go("a").repeated]) is None
    puts = len([key for key in landing.aws.objects(BUCKET) if "/_lakewriter/" not in key])
    result = landing.go("b", status)
    assert (result.code, describe_repeated([result.repeated])) == (code, said)
    if code:
        assert len([key for key in landing.aws.objects(BUCKET) if "/_lakewriter/" not in key]) == puts
    assert landing.ids() == ids


def test_rows_of_some_files_are_not_known(landing):
    landing.describe("all")
    landing.drop("1.parquet", 1)
    landing.go("a")
    landing.drop("2.parquet", 2)
    result = landing.go("b")
    assert describe_repeated([result.repeated]) == "appended again: 1 of 2 files that an earlier load has read"
    assert result.notes == (
        "no cursor: all rows of the source are appended again, as by 1 load before; an earlier load has read 1 of its "
        "2 files",
    )


def test_from_all_files_to_new_ones(landing):
    """Who has seen the warning needs no more than the key."""
    landing.describe("all")
    landing.drop("1.parquet", 1)
    landing.go("a")
    landing.describe()
    landing.drop("2.parquet", 2)
    assert landing.go("b").rows == 1
    assert landing.ids() == [1, 2]


def forget(landing: Landing) -> None:
    """A table as a release leaves it that notes no files."""
    landing.control(ID).state.move(Edit(inputs=None))


RESETS = [
    # what a person says, the ids in the table after the next load
    (lambda landing: chosen_files.list_all_files(landing.spec.tables[0], lambda: local_session(1)), [1, 2]),
    (lambda _: (), [1, 1, 2, 2]),
    (lambda _: None, [1, 1, 2, 2]),
]


@pytest.mark.parametrize(("say", "ids"), RESETS, ids=["read", "unread", "noted"])
def test_a_table_whose_files_nobody_has_noted(landing, say, ids):
    landing.describe("all")
    landing.drop("1.parquet", 1)
    landing.drop("2.parquet", 2)
    landing.go("a")
    forget(landing)
    landing.describe()
    result = landing.go("b", "failed")
    assert result.code == "SPEC_INVALID"
    assert "reads 'files: new', and nobody has noted all files that its 1 load so far have read" in result.message
    assert f"lakewriter reset LAKE {ID} --reason TEXT with --files-read" in result.message
    repair.reset_files(landing.control(ID), say(landing), "they are")
    landing.go("c")
    assert landing.ids() == ids
    assert landing.go("d").rows == 0


def test_a_repetition_that_nobody_can_know_is_refused(landing):
    landing.describe("all", "fail")
    landing.drop("1.parquet", 1)
    landing.go("a")
    forget(landing)
    result = landing.go("b", "failed")
    assert (result.code, landing.ids()) == ("SPEC_INVALID", [1])
    assert "has repeated: fail, and nobody has noted all files" in result.message
    repair.reset_files(
        landing.control(ID), chosen_files.list_all_files(landing.spec.tables[0], lambda: local_session(1)), "so"
    )
    assert landing.go("c", "failed").code == "INPUT_REPEATED"
    (landing.folder / "in" / "1.parquet").unlink()
    landing.drop("2.parquet", 2)
    landing.go("d")
    assert landing.ids() == [1, 2]


def test_a_load_that_noted_nothing_is_missed(landing):
    """Another release has loaded the table meanwhile: it wrote the record back as it was."""
    landing.describe()
    landing.drop("1.parquet", 1)
    landing.go("a")
    landing.control(ID).state.move(Edit(lambda state: {"committed": state.committed + 1}))
    landing.drop("2.parquet", 2)
    assert landing.go("b", "failed").code == "SPEC_INVALID"
    landing.describe("all")
    landing.go("c")
    landing.describe()
    assert landing.go("d", "failed").code == "SPEC_INVALID"


def test_an_undo_after_repeats_leaves_the_record_open(landing):
    """Load b has read the file as well: nobody can tell that it is not in the table."""
    landing.describe("all")
    landing.drop("1.parquet", 1)
    landing.go("a")
    landing.go("b")
    landing.undo("a")
    landing.describe()
    assert landing.go("c", "failed").code == "SPEC_INVALID"
    assert landing.ids() == [1]


def test_a_plan_says_what_is_new_and_what_to_do(landing):
    def planned():
        spec = landing.spec
        controls = Pipeline.open(spec, Clients(spec.access)).controls
        (table,) = plan(
            spec, job_id="p", clients=Clients(spec.access), spark=lambda: local_session(1), controls=controls
        )
        return table

    landing.describe()
    landing.drop("1.parquet", 1)
    landing.go("a")
    landing.drop("2.parquet", 2)
    assert (planned().reads, planned().rows) == ("1 of 2 files: those that are new", 1)
    landing.describe("all")
    table = planned()
    assert table.reads == "all rows"
    assert table.warnings[-2:] == (
        "no cursor: all rows of the source are appended again, as by 1 load before; an earlier load has read 1 of its "
        "2 files (2 rows)",
        "A cursor, read: {files: new}, or a mode that replaces rows keeps them from coming again.",
    )


def test_records_are_joined_and_old_ones_cleared_away(landing, monkeypatch):
    monkeypatch.setattr("lakewriter.commit.read_files.MOST_PARTS", 3)
    landing.describe()
    for number in range(9):
        landing.drop(f"{number}.parquet", number)
        assert landing.go(f"j{number}").rows == 1
    control = landing.control(ID)
    state = control.state.read()
    assert len(state.inputs.parts) <= 5
    assert (state.inputs.count_files(), state.knows_inputs) == (9, True)
    kept = {part.key for part in state.inputs.parts}
    folder = f"{PREFIX}/_lakewriter/flights/tables/{ID}/inputs/"
    assert len([key for key in landing.aws.objects(BUCKET) if key.startswith(folder)]) > len(kept)
    sweep(control, datetime.now(UTC) + timedelta(days=40), timedelta(days=30))
    assert {key for key in landing.aws.objects(BUCKET) if key.startswith(folder)} == kept
    assert landing.go("last").rows == 0


def test_a_record_that_is_gone_stops_new_files(landing):
    landing.describe()
    landing.drop("1.parquet", 1)
    landing.go("a")
    (part,) = landing.control(ID).state.read().inputs.parts
    landing.aws.client("s3").delete_object(Bucket=BUCKET, Key=part.key)
    result = landing.go("b", "failed")
    assert (result.code, re.sub(r"\S+/inputs/\S+", "KEY", result.message)) == (
        "STATE_LOST",
        f"KEY which names 1 file that loads of {ID} have read, is not there. Restore the object from its bucket's "
        f"versions; or say which files count as read: lakewriter reset LAKE {ID} --files-read --reason TEXT",
    )


def test_objects_in_s3_are_told_by_their_etags(landing):
    """An object that is written again as it was is the same one; a hidden one is none."""
    s3 = landing.aws.client("s3")
    s3.create_bucket(Bucket="acme-landing")

    def put(name: str, *ids: int) -> None:
        landing.drop(name, *ids)
        s3.put_object(Bucket="acme-landing", Key=f"in/{name}", Body=(landing.folder / "in" / name).read_bytes())

    read = {"format": "parquet", "path": "s3://acme-landing/in", "files": "new"}
    landing.write({"table": "days", "schema": "public", "read": read}, update_aws_glue_catalog=False)
    put("1.parquet", 1)
    put("_started.parquet", 9)
    assert landing.go("a").rows == 1
    put("1.parquet", 1)
    assert landing.go("b").rows == 0
    put("2.parquet", 2)
    assert landing.go("c").rows == 1
    put("1.parquet", 1, 7)
    assert landing.go("d", "failed").code == "INPUT_REPEATED"
    assert landing.ids() == [1, 2]


@pytest.mark.parametrize(
    ("way", "said", "rows"), [("--files-read", 2, 0), ("--files-unread", 0, 2), ("--files-noted", 2, 0)]
)
def test_a_person_says_which_files_count_as_read(landing, way, said, rows):
    landing.describe()
    landing.drop("1.parquet", 1)
    landing.drop("2.parquet", 2)
    landing.go("a")
    arguments = ["reset", str(landing.file), "days", way, "--reason", "a drill"]
    result = CliRunner().invoke(main, arguments)
    assert (result.exit_code, result.stdout.strip()) == (0, f"{ID}: files that count as read: {said}"), result.stderr
    assert landing.control(ID).state.read().resets[-1].reason == "a drill"
    assert landing.go("b").rows == rows
