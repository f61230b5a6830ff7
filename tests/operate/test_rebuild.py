"""A state concluded from what loads have left, and loads ended whose intent is gone, on the embedded AWS."""

import random
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from click.testing import CliRunner

from lakewriter.aws import Clients
from lakewriter.cli.main import main
from lakewriter.commit import attempt as attempts
from lakewriter.commit.conditional_writes import S3Store
from lakewriter.commit.control import Control, open_control
from lakewriter.commit.store import Entry
from lakewriter.commit.table_objects import find_highest_numbers
from lakewriter.dialects.lake_yaml import load_spec
from lakewriter.errors import LakeError
from lakewriter.naming import ControlKeys
from lakewriter.operate.rebuild import InCatalog, conclude
from lakewriter.operate.rebuild_records import read_leftovers
from lakewriter.receipt import Batch, Cursor, Part, Receipt
from lakewriter.receipts.parts import Receipts
from lakewriter.records.actions import FilesAction
from lakewriter.records.facets import Quarantine, Removal, UndoneLoad
from lakewriter.records.state import TableState
from lakewriter.records.sync_records import SourceState, SyncIntent
from lakewriter.run import load as steps
from lakewriter.run.kinds import MicroBatch, Plain
from lakewriter.spec.key_template import Template
from lakewriter.spec.layout import Layout
from tests.commit.edits import Edit
from tests.commit.intents import intent, recast
from tests.commit.memory import Memory, World
from tests.commit.test_histories import receipt
from tests.load.lakes import BUCKET
from tests.support.sdk import sdk

CONTROL = "data/_lakewriter/p/"
STATE = f"{CONTROL}tables/public.events/state.json"


class Killed(BaseException):
    """The process is gone."""


class Table:
    """Loads of a table, each of files of which it is said what they are."""

    id = "public.events"
    last = ""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, endpoint: str = "", **table: str) -> None:
        self.file = folder / "lake.yaml"
        destination = {"type": "supaflow-s3", "s3_bucket_name": BUCKET, "bucket_region": "us-east-1",
                       "s3_path_prefix": "data", "partition_strategy": "NONE"}  # fmt: skip
        destination |= {"custom_s3_endpoint": endpoint} if endpoint else {}
        own = {"table": "events", "schema": "public", "read": {"format": "json", "path": "in"}} | table
        self.file.write_text(yaml.safe_dump({"pipeline": "p", "destination": destination, "tables": [own]}), "utf-8")
        self.spec = load_spec(self.file)
        self.clients = Clients(self.spec.access)
        self.monkeypatch = monkeypatch

    @property
    def control(self) -> Control:
        return open_control(self.spec, self.spec.tables[0], S3Store(self.clients))

    def load(self, job_id: str, *, files: int = 1, dies: str = "", batch: Batch | None = None, **fields) -> str | None:
        """The code of its failure. ``dies`` is the step at whose beginning the process is gone."""

        def stage_table(load, table, began, sync, uploads):
            names = load.names[table.id]
            staged = []
            for seq in range(files):
                staged.append(self.stage(names.object_key(seq), load.attempt.load))
            uploads.hold(Receipts(tuple(staged)), Receipts())
            own: dict[str, Any] = {"table_id": self.id, "schema_name": "public", "table": "events"}
            own |= {"access": self.spec.access, "batch": batch}
            return intent(load.attempt, tuple(staged), began.cursor, **own | fields)

        with self.monkeypatch.context() as patch:
            patch.setattr(steps, "stage_table", stage_table)
            if dies:
                patch.setattr(attempts, dies, lambda *_, **__: (_ for _ in ()).throw(Killed))
                patch.setattr(attempts, "give_up", lambda *_: None)
            try:
                kind = MicroBatch(batch, None, cast(Any, None)) if batch else Plain()
                report = steps.run(
                    self.spec,
                    job_id=job_id,
                    clients=self.clients,
                    spark=lambda: cast(Any, None),
                    kind=kind,
                )
            except Killed:
                return None
            except LakeError as error:
                return error.code
        self.last = report.tables[0].status
        return report.tables[0].code

    def status(self, job_id: str) -> str:
        """What becomes of a load."""
        assert self.load(job_id) is None
        return self.last

    def stage(self, key: str, load: str) -> Receipt:
        s3 = sdk("s3")
        upload = s3.create_multipart_upload(Bucket=BUCKET, Key=key, Metadata={"lakewriter-load": load})["UploadId"]
        answer = s3.upload_part(Bucket=BUCKET, Key=key, UploadId=upload, PartNumber=1, Body=b"x" * 101)
        part = Part(number=1, etag=answer["ETag"])
        return receipt(key, upload, [1], 0).model_copy(update={"bucket": BUCKET, "parts": (part,)})

    def run(self, *arguments: str) -> tuple[int, str]:
        """Exit code and output of a command on this pipeline."""
        verb, *more = arguments
        result = CliRunner().invoke(main, [verb, str(self.file), *more])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result.exit_code, result.output


@pytest.fixture
def table(tmp_path, monkeypatch, aws, bucket) -> Table:
    return Table(tmp_path, monkeypatch)


def lose(aws, *keys: str) -> None:
    for key in list(aws.objects(BUCKET)):
        if key.startswith(keys):
            aws.client("s3").delete_object(Bucket=BUCKET, Key=key)


def plain(state: TableState) -> TableState:
    """A state without what is not concluded."""
    return state.model_copy(update={"write": 0, "resets": (), "swept": None, "last_commit": None})


def same(found: TableState, before: TableState) -> None:
    assert plain(found) == plain(before)
    assert found.last_commit is not None
    assert before.last_commit is not None
    assert abs((found.last_commit - before.last_commit).total_seconds()) < 5


FIVE = Cursor("int64", "5")
SOURCE = SourceState(kind="stream", text="{}", digest="d", job_id="c", place=3)
SYNC = SyncIntent(sync_id=4, generation_id=2, minimum_generation_id=2, source=SOURCE, unfinished=True)
LOADS = {
    "plain": [{}, {}],
    "a cursor": [{"after": Cursor("int64", "3")}, {"after": FIVE}, {"files": 0}],
    "a counter": [{"counter_after": 3}, {"counter_after": 7}],
    "a sync": [{"sync": SyncIntent(sync_id=3, generation_id=1)}, {"sync": SYNC}],
    "batches": [{"batch": Batch("q", 0, "x")}, {"batch": Batch("q", 1, "y")}],
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("loads", LOADS.values(), ids=list(LOADS))
def test_the_state_as_it_was(table, aws, loads):
    for job_id, fields in zip("abc", loads, strict=False):
        batch = fields.get("batch")
        assert table.load(batch.job_id if batch else job_id, **fields) is None
    before = table.control.state.read()
    assert before.committed == len(loads)
    lose(aws, STATE)
    assert table.load("next") == "STATE_LOST"
    assert STATE not in aws.objects(BUCKET)
    code, said = table.run("rebuild", "events", "--reason", "it was deleted")
    assert code == 0, said
    assert f"{len(loads)} committed loads, the last one {before.last_job}" in said
    state = table.control.state.read()
    same(state, before)
    ((reset),) = state.resets
    objects = len(files_of(aws))
    what = f"state rebuilt from {len(loads)} reports and {objects} object{'s' * (objects != 1)}"
    assert (reset.what, reset.reason) == (what, "it was deleted")
    if "batch" not in loads[0]:
        assert table.load("next") is None
        assert table.control.state.read().committed == len(loads) + 1


def files_of(aws) -> list[str]:
    return [key for key in aws.objects(BUCKET) if "/_lakewriter/" not in key]


PENDING = [
    # how many of two files were completed before the state was lost, the phase that is concluded
    (0, None),
    (1, "intended"),
    (2, "uploaded"),
]


@pytest.mark.parametrize(("completed", "phase"), PENDING)
def test_a_pending_load(table, aws, completed, phase):
    """Files are completed only once an intent is bound; of one of which none is there nothing can be said."""
    table.load("a")
    table.load("b", files=2, dies="settle", after=FIVE)
    pending = table.control.state.read().pending
    for each in table.control.read_intent("b", pending.attempt).files.at_hand[:completed]:
        S3Store(table.clients).complete(each)
    lose(aws, STATE)
    _, said = table.run("rebuild", "events", "--reason", "r")
    state = table.control.state.read()
    assert (state.committed, state.pending and state.pending.phase) == (1, phase)
    assert set(state.running) == {"b"}
    assert ("whether b passed its point of no return" in said) is (phase is None)
    assert table.load("c" if phase else "b", files=2) is None
    state = table.control.state.read()
    assert (state.committed, len(files_of(aws)), state.cursor) == ((3, 5, FIVE) if phase else (2, 3, None))
    assert aws.uploads(BUCKET) == []


def test_a_load_that_was_withdrawn_is_not_pending(table, aws):
    table.load("a")
    table.load("b", dies="settle")
    aws.client("s3").put_object(Bucket=BUCKET, Key="data/public/events/part-b-00000.gzip.parquet", Body=b"")
    assert table.load("c") is None
    lose(aws, STATE)
    table.run("rebuild", "events", "--reason", "r")
    state = table.control.state.read()
    assert (state.committed, state.last_job, state.pending, dict(state.running)) == (2, "c", None, {})


def test_reports_that_were_cleared_away(table, aws):
    table.load("a")
    table.load("b")
    lose(aws, STATE, f"{CONTROL}loads/")
    assert table.load("c") == "STATE_LOST"
    _, said = table.run("rebuild", "events", "--reason", "r")
    assert "1 committed load, the last one unknown" in said
    assert "how many loads wrote 2 objects whose reports were cleared away, such as data/public/events/part-" in said
    assert table.load("c") is None


CURSORS = [
    # options, the exit code, the cursor that the state has then
    ((), 1, None),
    (("--cursor", "5"), 2, None),
    (("--no-cursor",), 0, None),
    (("--cursor", "5", "--type", "int64"), 0, FIVE),
]


@pytest.mark.parametrize(("options", "code", "cursor"), CURSORS)
def test_a_cursor_that_no_record_tells(tmp_path, monkeypatch, aws, bucket, options, code, cursor):
    """Read from the start the table would have everything twice: a person has to say so."""
    table = Table(tmp_path, monkeypatch, cursor="at")
    table.load("a", after=FIVE)
    lose(aws, STATE, f"{CONTROL}loads/")
    found, said = table.run("rebuild", "events", *options, "--reason", "r")
    assert found == code, said
    assert (STATE in aws.objects(BUCKET)) is (code == 0)
    if code == 0:
        assert table.control.state.read().cursor == cursor


@pytest.mark.parametrize("body", [b"", b"{}", b"oops"])
def test_a_state_that_says_nothing_is_replaced(table, aws, body):
    table.load("a")
    before = table.control.state.read()
    aws.client("s3").put_object(Bucket=BUCKET, Key=STATE, Body=body)
    assert table.load("b") == "STATE_LOST"
    assert aws.objects(BUCKET)[STATE] == body
    assert table.run("rebuild", "events", "--reason", "r")[0] == 0
    same(table.control.state.read(), before)


def test_a_state_of_attempts_alone_is_replaced_by_one_of_a_later_number(table, aws):
    """Another process may go by the number of the state that it has read."""
    aws.client("s3").put_object(Bucket=BUCKET, Key=STATE, Body=TableState(write=3).model_dump_json().encode())
    assert table.run("rebuild", "events", "--no-cursor", "--reason", "r")[0] == 0
    assert table.control.state.read().write == 4


def test_a_state_that_says_something_is_not_replaced(table, aws):
    table.load("a")
    before = aws.objects(BUCKET)[STATE]
    code, said = table.run("rebuild", "events", "--reason", "r")
    assert (code, "has a state, of 1 committed load" in said) == (2, True)
    assert aws.objects(BUCKET)[STATE] == before


COMMANDS = [("status",), ("reset", "events", "--no-cursor", "--reason", "r"), ("abandon", "a", "--reason", "r")]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("command", COMMANDS, ids=[command[0] for command in COMMANDS])
@pytest.mark.parametrize("body", [None, b"", b"{}", b"oops"], ids=["missing", "empty", "no fields", "garbage"])
def test_commands_stop_at_a_lost_state(table, aws, command, body):
    table.load("a")
    lose(aws, STATE)
    if body is not None:
        aws.client("s3").put_object(Bucket=BUCKET, Key=STATE, Body=body)
    before = aws.objects(BUCKET)
    code, said = table.run(*command)
    assert (code, said.startswith("STATE_LOST: ")) == (1, True), said
    assert aws.objects(BUCKET) == before


LOST = [
    # how many of two files were completed, the phase in which the intent was lost, what lies there at the end, how many
    # loads are committed, how the same job id ends
    (0, "intended", 0, 0, "done"),
    (1, "intended", 0, 0, "done"),
    (1, "aborting", 0, 0, "done"),
    (2, "uploaded", 2, 1, "already_done"),
]


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("completed", "phase", "files", "committed", "again"), LOST)
def test_a_pending_load_whose_intent_is_gone(table, aws, completed, phase, files, committed, again):
    table.load("b", files=2, dies="settle")
    pending = table.control.state.read().pending
    for each in table.control.read_intent("b", pending.attempt).files.at_hand[:completed]:
        S3Store(table.clients).complete(each)
    table.control.state.move(Edit(pending=pending.model_copy(update={"phase": phase})))
    assert table.run("abandon", "b", "--intent-lost", "--reason", "r")[0] == 2
    lose(aws, table.control.keys.intent("b", pending.attempt, Table.id))
    assert table.load("c") == "PENDING_UNRECOVERABLE"
    code, said = table.run("abandon", "b", "--reason", "r")
    assert (code, "--intent-lost" in said) == (1, True)
    code, said = table.run("abandon", "b", "--intent-lost", "--reason", "swept away")
    assert (code, "What cannot be known" in said) == (0, True), said
    state = table.control.state.read()
    assert (len(files_of(aws)), state.committed, state.pending, dict(state.running)) == (files, committed, None, {})
    assert [(each.what, each.reason) for each in state.resets] == [
        (f"load b abandoned without its intent ({phase})", "swept away")
    ]
    assert table.load("c") is None
    assert table.status("b") == again


def test_an_intent_of_a_later_version_is_not_lost(table, aws):
    table.load("b", dies="settle")
    key = table.control.keys.intent("b", table.control.state.read().pending.attempt, Table.id)
    aws.client("s3").put_object(Bucket=BUCKET, Key=key, Body=b'{"version": 2}')
    code, said = table.run("abandon", "b", "--intent-lost", "--reason", "r")
    assert (code, said.startswith("PENDING_UNRECOVERABLE: ")) == (1, True)
    aws.client("s3").put_object(Bucket=BUCKET, Key=key, Body=b"")
    assert table.run("abandon", "b", "--intent-lost", "--reason", "r")[0] == 0


BOTH = [
    # whether the files with good and bad rows are completed, the phase that is concluded
    (False, False, None),
    (True, False, "intended"),
    (False, True, "intended"),
    (True, True, "uploaded"),
]


@pytest.mark.parametrize(("good", "bad", "phase"), BOTH)
def test_files_with_bad_rows_tell_of_a_pending_load_too(table, good, bad, phase):
    table.load("b", dies="settle")
    left = read_leftovers(table.control)
    (pending,) = left.unclosed
    kept = table.stage("data/public/events__quarantine/on_bad_row-1.parquet", pending.load)
    for each in [*(pending.files.at_hand if good else ()), *([kept] if bad else [])]:
        S3Store(table.clients).complete(each)
    quarantine = Quarantine(catalog=FilesAction(), receipts=(kept,))
    left = replace(left, unclosed=(pending.model_copy(update={"quarantine": quarantine}),))
    state = conclude(table.control, InCatalog(), left, "r").state
    assert (state.pending.phase if state.pending else None) == phase


def test_an_undo_that_has_deleted_bad_rows_is_pending(table):
    table.load("b", dies="settle")
    left = read_leftovers(table.control)
    (pending,) = left.unclosed
    gone = (Removal(key="data/public/events__quarantine/on_bad_row-1.parquet", etag="e"),)
    undone = UndoneLoad(job_id="a", attempt="1", files=0, rows=0, reason="r", next="a.r2", quarantined=gone)
    undo = recast(pending, "undo", undoes=undone)
    state = conclude(table.control, InCatalog(), replace(left, unclosed=(undo,)), "r").state
    assert state.pending is not None
    assert state.pending.phase == "uploaded"


SEVEN, NINE = "t/v0000000001/00000000000000000007.parquet", "t/v0000000000/00000000000000000009.parquet"
KEYS = [
    # a layout's file name, keys, the backfill number, the next file's counter and the last full refresh
    ("v{backfill}/{counter}", [SEVEN, NINE, "t/notes.txt"], (1, 10, 0)),
    ("part-{job_id}-{seq}", ["t/part-a-00000.parquet"], (0, 0, 0)),
    ("v{backfill}/{counter}", [], (0, 0, 0)),
    ("g{generation}/part-{job_id}-{seq}", ["t/g0000000007/part-a-00000.parquet", "t/_latest/files.json"], (0, 0, 7)),
]


@pytest.mark.parametrize(("file", "keys", "numbers"), KEYS)
def test_numbers_in_keys(file, keys, numbers):
    layout = Layout("t", Template.parse(f"{file}.parquet"))
    assert find_highest_numbers(layout, keys) == numbers


def test_an_iceberg_table_counts_its_loads(table, aws):
    """Its snapshots outlive the reports; a pending load that has one is not counted twice."""
    table.load("a")
    table.load("b", dies="settle")
    (pending,) = read_leftovers(table.control).unclosed
    for each in pending.files.at_hand:
        S3Store(table.clients).complete(each)
    left = read_leftovers(table.control)
    for catalog, committed in [(InCatalog(7), 7), (InCatalog(7, frozenset({pending.load})), 6), (InCatalog(), 1)]:
        state = conclude(table.control, catalog, left, "r").state
        assert (state.committed, state.pending and state.pending.phase) == (committed, "uploaded")


def test_a_report_that_is_cleared_away_meanwhile_is_left_out():
    """As those of older loads were before: the sweep of another process deletes what this one has listed."""
    world, keys = World(), ControlKeys("", "p")

    class Swept(Memory):
        def list_entries(self, prefix, limit=None):
            return iter([Entry(keys.report("a", "s.t"), world.clock)] if "/loads/" in prefix else [])

    left = read_leftovers(Control(Swept(world, lambda: None, random.Random(0), 0), keys, "s.t"))
    assert (left.closed, left.unclosed, left.running) == ((), (), {})
