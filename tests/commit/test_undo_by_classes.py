"""A change and its undo, over random histories of a state: each field does what its class in ``FIELDS`` says."""

import random
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from lakewriter.commit.attempt import Attempt
from lakewriter.receipt import Cursor, InferredType
from lakewriter.records.actions import CatalogAction, FilesAction, IcebergAction
from lakewriter.records.changes import Intent, Load, Merge, Refresh, ReplacePartitions
from lakewriter.records.facets import MergeIntent, Switch, UndoneLoad
from lakewriter.records.fold.by_hand import SetCursor
from lakewriter.records.fold.closing import Close
from lakewriter.records.fold.steps import fold
from lakewriter.records.input_records import InputPart, Inputs, InputsIntent
from lakewriter.records.state import FIELDS, Pending, TableState
from lakewriter.records.sync_records import SourceState, SyncIntent
from lakewriter.run.table_intent import _note_before
from lakewriter.spec.catalogs import GlueService
from tests.commit.intents import intent
from tests.commit.test_histories import receipt

START: Final = datetime(2024, 3, 1, tzinfo=UTC)
ICEBERG: Final = IcebergAction(service=GlueService(), namespace="s", table="t", location="s3://b/s/t")
CATALOGS: Final[tuple[CatalogAction, ...]] = (FilesAction(), ICEBERG)
DEVIATES: Final = {
    "inputs": "files that the load has read lie in objects that others name: the record counts them out by its job id",
    "retiring": "objects that are to be deleted are deleted, and the load's own files too",
    "types": "a type that two loads have given stays: readers have both loads' files",
}


class History:
    """A table's state, and how it came to that."""

    def __init__(self, seed: int) -> None:
        self.rng, self.state, self.jobs = random.Random(seed), TableState(), 0
        self.catalog = self.rng.choice(CATALOGS)

    def close(self, change: Intent) -> TableState:
        at = START + timedelta(hours=self.jobs)
        pending = Pending(job_id=change.job_id, attempt=change.attempt, phase="uploaded", since=at)
        self.state = fold(self.state.model_copy(update={"pending": pending}), Close(change, at, pending))
        return self.state

    def own(self, job: str) -> Attempt:
        return Attempt("p", job, "A", START + timedelta(hours=self.jobs), timedelta(days=30))

    def make(self) -> Any:
        """Any change that the state allows."""
        self.jobs += 1
        kinds = ["load", "load", "refresh"]
        if self.catalog.keeps_versions:
            kinds += ["merge", "replace_partitions", "compact"]
        kind: Any = self.rng.choice(kinds)
        own, state, rng = self.own(f"job-{self.jobs}"), self.state, self.rng
        if kind == "compact":
            return intent(own, kind=kind, catalog=self.catalog, counter_after=state.counter + 1)
        fields = self.make_fields(own)
        after = Cursor("int64", str(self.jobs)) if rng.random() < 0.5 else state.cursor
        if kind == "merge":
            key = f"keys/{self.jobs}" if rng.random() < 0.5 else None
            fields["merge"] = MergeIntent(keys=("id",), order_by=(), deleted_keys=key, deleted_seconds=60.0)
        if kind in ("refresh", "replace_partitions"):
            shown = state.shown.number if state.shown is not None else 0
            fields["switch"] = Switch(before=shown, after=state.generation + 1, keep_seconds=3600.0)
        files = (receipt(own.job_id, "u", [1], 0),) if rng.random() < 0.8 else ()
        load = intent(own, files, state.cursor, after, kind=kind, **fields)
        return load.model_copy(update={"before": _note_before(state)})

    def make_fields(self, own: Attempt) -> dict[str, Any]:
        """Of a load, whatever its kind."""
        state, rng = self.state, self.rng
        fields: dict[str, Any] = {"catalog": self.catalog}
        if rng.random() < 0.5:
            fields["counter_after"] = state.counter + 1
        if rng.random() < 0.4:
            source, is_part = SourceState(kind="stream", text="{}", digest="d", job_id=own.job_id), rng.random() < 0.3
            fields["sync"] = SyncIntent(sync_id=self.jobs, generation_id=1, source=source, unfinished=is_part)
        if rng.random() < 0.6:
            names = rng.sample(["a", "b", "c"], 2)
            fields["types"] = tuple(InferredType(name=name, type=rng.choice(["bigint", "double"])) for name in names)
        if rng.random() < 0.4:
            before = state.inputs or Inputs(committed=state.committed)
            part = InputPart(key=own.job_id, sha256="", length=1, files=1)
            fields["inputs"] = InputsIntent(before=before, adds=(part,), exclusive=True)
        return fields

    def make_undo(self, load: Load, before: TableState) -> Any:
        """The undo of the last load, as it is planned: nothing came after it."""
        self.jobs += 1
        moved = load.cursor_after != load.cursor_before
        undone = UndoneLoad(
            job_id=load.job_id, attempt="A", files=1, rows=1, reason="r", next=f"{load.job_id}.r2", before=load.before,
            restores_cursor=moved,
            restores_source=load.sync is not None,
            restores_keys=isinstance(load, Merge) or (isinstance(load, Refresh) and self.catalog.keeps_versions),
            restores_inputs=load.before.knows_inputs and load.depends(),
        )  # fmt: skip
        back = None
        if isinstance(load, Refresh):
            back = Switch(before=load.switch.after, after=load.switch.before)
        cursor = before.cursor if moved else self.state.cursor
        undo = self.own(f"undo.{load.job_id}")
        return intent(
            undo, (), self.state.cursor, cursor, kind="undo", catalog=self.catalog, undoes=undone, switch=back
        )


def read(state: TableState, name: str) -> Any:
    within, _, field = name.rpartition(".")
    return getattr(state.sync if within else state, field)


def list_faults(before: TableState, after: TableState, back: TableState) -> list[str]:
    """The fields that are not as their classes say."""
    faults = []
    for name, follows in FIELDS.items():
        was, left, now = (read(state, name) for state in (before, after, back))
        if name in DEVIATES:
            continue
        if follows == "stays" and now != left:
            faults.append(f"{name} stays {left}, is {now}")
        elif follows in ("source", "files") and now != was:
            faults.append(f"{name} was {was}, is {now}")
        elif follows == "grows" and isinstance(left, tuple) and now[: len(left)] != left:
            faults.append(f"{name} had {left}, has {now}")
        elif follows == "grows" and isinstance(left, int | datetime) and now < left:
            faults.append(f"{name} goes back from {left} to {now}")
    return faults


def list_deviations(load: Load, before: TableState, after: TableState, back: TableState) -> list[str]:
    """What is wrong in the fields that deviate."""
    faults = []
    kept, job = {column.name: column for column in back.types or ()}, load.job_id
    given = {column.name for column in after.types or () if column.load == job}
    if not isinstance(load, Refresh) or isinstance(load, ReplacePartitions) or load.catalog.keeps_versions:
        lost = {column.name for column in before.types or ()} - kept.keys()
        faults += [f"types lack {sorted(lost)}"] if lost else []
        faults += [f"types have {sorted(given & kept.keys())}"] if given & kept.keys() else []
    elif back.types != before.types:
        faults.append(f"types were {before.types}, are {back.types}")
    read_before = before.inputs.count_files() if before.inputs is not None else 0
    if back.inputs is not None:
        own = sum(part.files for part in back.inputs.parts if part.key == job)
        is_out = job in back.inputs.without or not own
        if back.inputs.count_files() - own != read_before or not is_out:
            faults.append(f"inputs were {before.inputs}, are {back.inputs}")
    elif before.inputs is not None:
        faults.append("inputs are gone")
    shown = {generation.number for generation in back.generations}
    due = {entry.generation for entry in back.retiring}
    if back.shown is not None and back.shown.number in due:
        faults.append(f"generation {back.shown.number} is shown and is deleted")
    if isinstance(load, Refresh) and not load.catalog.keeps_versions and load.switch.after not in due - shown:
        faults.append(f"generation {load.switch.after} stays")
    return faults


def play(seed: int) -> list[str]:
    history, faults = History(seed), []
    for _ in range(history.rng.randrange(2, 9)):
        if history.rng.random() < 0.1:
            history.state = fold(history.state, SetCursor(START, "r", None))
        before, change = history.state, history.make()
        after = history.close(change)
        if isinstance(change, Load) and history.rng.random() < 0.6:
            back = history.close(history.make_undo(change, before))
            faults += list_faults(before, after, back) + list_deviations(change, before, after, back)
    return [f"seed {seed} ({type(history.catalog).__name__}): {fault}" for fault in faults]


def test_deviations_are_few():
    assert DEVIATES.keys() <= FIELDS.keys()
    assert len(DEVIATES) <= 3


def test_random_changes_and_their_undos():
    assert [fault for seed in range(300) for fault in play(seed)] == []


@pytest.mark.exhaustive
def test_many_random_changes_and_their_undos():
    assert [fault for seed in range(300, 10_300) for fault in play(seed)] == []
