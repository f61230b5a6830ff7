"""Verify committed loads: compare their receipts with S3 objects, Parquet footers, rows and the catalog."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Literal

from lakewriter import aws
from lakewriter.commit.at_once import call_all
from lakewriter.commit.catalog import find_catalog, open_catalog_writer
from lakewriter.commit.control import Control
from lakewriter.commit.data_store import open_data_store, reuse_clients
from lakewriter.commit.iceberg.catalog_vendor import make_data_clients
from lakewriter.commit.latest import compare_latest
from lakewriter.commit.mismatch import CODES, Comparison, Kind, Mismatch
from lakewriter.commit.recover import correct_partitions
from lakewriter.errors import CODES as ERRORS
from lakewriter.errors import GlueAccessDeniedError, InternalError, LakeError, SpecInvalidError
from lakewriter.exit_codes import EXIT_FAILED, EXIT_OK
from lakewriter.operate.load_objects import compare_objects
from lakewriter.operate.load_records import LoadRecords, TableRecords
from lakewriter.operate.row_counts import CountedFile, Counting, RowCount, count_rows
from lakewriter.operate.unknown_objects import SLACK, Neighbours, TablePath
from lakewriter.records.changes import Intent
from lakewriter.records.state import TableState
from lakewriter.report import ABANDONED, format_count
from lakewriter.spec.model import Model

LOG: Final = logging.getLogger(__name__)
NOT_ONE: Final = "is committed in no table of this pipeline."


class Difference(Model):
    """One thing that is no longer as the load left it; ``key`` is blank for the catalog, ``kind`` a ``Kind``."""

    table: str
    key: str
    kind: str
    code: str
    message: str


class Verified(Model):
    """The comparison of a load's tables; ``rows`` and ``files`` are those of the receipts.

    ``notes`` describe changes that are no fault. ``counted`` are the rows counted in the files, if they were.
    """

    version: Literal[1] = 1
    job_id: str
    tables: tuple[str, ...]
    missing: tuple[str, ...]
    rows: int
    files: int
    differences: tuple[Difference, ...]
    notes: tuple[str, ...] = ()
    counted: tuple[RowCount, ...] = ()

    @property
    def exit_code(self) -> int:
        """1 for a difference; where something could not be compared and nothing differs, that error's exit code."""
        if not self.differences:
            return EXIT_OK
        if any(difference.kind != Kind.NOT_COMPARED for difference in self.differences):
            return EXIT_FAILED
        return max(ERRORS[difference.code].exit_code for difference in self.differences)


class Verifier:
    """Verifies loads of one pipeline; what several loads need is read once. With ``counting`` rows are counted.

    ``only_newer`` leaves out objects under a table's path that are older than the load: without it the report of every
    kept load is needed to tell them apart.
    """

    def __init__(
        self,
        controls: Mapping[str, Control],
        clients: aws.Clients,
        counting: Counting | None = None,
        *,
        only_newer: bool = False,
    ) -> None:
        self._controls, self._clients, self._counting, self._only_newer = controls, clients, counting, only_newer
        # What a load of this process has read may be gone since.
        clients.metadata.clear()
        clients.parts.clear()
        self._records = TableRecords.list_all(controls)
        self._paths: dict[str, TablePath] = {}
        self._neighbours = Neighbours(controls)
        self._partitions = TablePartitions(clients)
        self._corrected = set[str]()

    def list_kept_loads(self) -> list[str]:
        """Return the job ids of all loads whose reports are kept, the oldest first."""
        began: dict[str, tuple[object, str]] = {}
        for records in self._records.values():
            for job_id, entry in records.entries.items():
                began[job_id] = min(began.get(job_id, (entry.modified, job_id)), (entry.modified, job_id))
        return sorted(began, key=lambda job_id: began[job_id])

    def verify(self, job_id: str) -> Verified:
        """Compare a load in all tables; ``SPEC_INVALID`` where no table of this pipeline has it.

        An error that keeps one table from being compared is among the differences. Where no table can be compared the
        error is raised, unless it is a fault of the program, which other loads may not have.
        """
        compared = self._compare_tables(job_id)
        failed = [error for error in compared.values() if isinstance(error, LakeError)]
        tables = {table_id: _to_table(table) for table_id, table in compared.items() if table is not None}
        raised = next((error for error in failed if not isinstance(error, InternalError)), None)
        if len(failed) == len(tables) and raised is not None:
            raise raised
        if not tables:
            raise SpecInvalidError(f"load {job_id!r} {NOT_ONE}", remedy="lakewriter history LAKE lists its loads.")
        intents = [table.intent for table in tables.values() if table.intent is not None]
        return Verified(
            job_id=job_id,
            tables=tuple(tables),
            missing=tuple(table_id for table_id in self._controls if table_id not in tables),
            rows=sum(intent.rows for intent in intents),
            files=sum(len(intent.files) for intent in intents),
            differences=tuple(
                _make_difference(table_id, mismatch)
                for table_id, table in tables.items()
                for mismatch in table.mismatches
            ),
            notes=tuple(note for table in tables.values() for note in table.notes),
            counted=tuple(table.counted for table in tables.values() if table.counted is not None),
        )

    def _compare_tables(self, job_id: str) -> "dict[str, _Table | LakeError | None]":
        def compare(table_id: str) -> _Table | LakeError | None:
            try:
                return self._compare_table(table_id, job_id)
            except LakeError as error:
                return error

        # Counting reads the files: memory suffices for one table at a time.
        answers = call_all(compare, self._controls) if self._counting is None else map(compare, self._controls)
        return dict(zip(self._controls, answers, strict=True))

    def _compare_table(self, table_id: str, job_id: str) -> "_Table | None":
        try:
            return self._compare_load(table_id, job_id)
        except LakeError:
            raise
        except Exception as error:
            LOG.exception("Comparing table %s of load %s met a fault of the program.", table_id, job_id)
            raise InternalError.met(f"table {table_id}", error) from error

    def _compare_load(self, table_id: str, job_id: str) -> "_Table | None":
        records = self._records[table_id].compare(job_id)
        if records is None:
            return None
        # No object is expected of an undo, or of a load that was undone or replaced.
        is_gone = records.is_undone or records.is_replaced
        intent = None if is_gone or records.intent is None or not records.intent.effects.adds else records.intent
        table = _Table(list(records.mismatches), list(records.notes), intent)
        self._compare_latest(table_id, records, table)
        late, corrected = _compare_or_note(lambda: self._correct_partitions(table_id))
        table.mismatches += late
        table.notes += corrected
        if intent is not None:
            self._compare_intent(table_id, records, intent, table)
        return table

    def _compare_latest(self, table_id: str, records: LoadRecords, table: "_Table") -> None:
        """Compare the object that names the table's files, for the changes after which readers see what they see."""
        state, intent = self._records[table_id].state, records.intent
        switch = intent.effects.switch if intent is not None else None
        if isinstance(state, LakeError) or switch is None or switch.latest is None:
            return
        shown = state.shown.number if state.shown is not None else 0
        if switch.after == shown:
            table.add_of_catalog(compare_latest(self._controls[table_id], state), records)

    def _correct_partitions(self, table_id: str) -> tuple[list[Mismatch], list[str]]:
        """Correct the partitions that late calls have changed, once for all loads of the table."""
        state, control = self._records[table_id].state, self._controls[table_id]
        if table_id in self._corrected or not isinstance(state, TableState) or not state.partitions:
            return [], []
        self._corrected.add(table_id)
        return [], list(correct_partitions(control, reuse_clients(self._clients)))

    def _compare_intent(self, table_id: str, records: LoadRecords, intent: Intent, table: "_Table") -> None:
        control, clients = self._controls[table_id], make_data_clients(intent.catalog, self._clients)
        comparison = self._compare_catalog(intent)
        store = open_data_store(control.store, intent.catalog, intent.access, reuse_clients(self._clients))
        objects = compare_objects(intent, store, clients, lambda key: key not in comparison.replaced_keys)
        if records.is_retired and any(mismatch.kind is Kind.OBJECT_GONE for mismatch in objects):
            table.notes.append(f"a later full refresh of {table_id} has replaced load {intent.job_id!r}")
            objects = [mismatch for mismatch in objects if mismatch.kind is not Kind.OBJECT_GONE]
        strangers, notes = _compare_or_note(lambda: self._find_path(table_id, intent).compare(intent))
        partitions, more = _compare_or_note(lambda: self._partitions.compare(intent))
        bad_rows, gone = _compare_or_note(lambda: self._compare_quarantine(control, intent))
        table.add_of_catalog(comparison.mismatches, records)
        table.mismatches += [*objects, *partitions, *strangers, *bad_rows]
        table.notes += [*comparison.notes, *more, *notes, *gone]
        if self._counting is None or records.is_retired:
            return
        files = (
            CountedFile(receipt.key, receipt.rows, receipt.engine) for receipt in intent.files.without_statistics()
        )
        live = [file for file in files if file.key not in comparison.replaced_keys]
        if rewritten := len(intent.files) - len(live):
            what = f"{format_count(rewritten, 'file')} of load {intent.job_id!r}"
            table.notes.append(f"{what} are no longer in {table_id}, and their rows are not counted")
        if not intent.files or live:
            unreadable = {mismatch.key for mismatch in objects}
            copies = [
                stranger.key
                for stranger in strangers
                if stranger.kind is Kind.OBJECT_COPIED and stranger.load == intent.load
            ]
            readable = [file for file in live if file.key not in unreadable]
            expected = sum(file.rows for file in live)
            table.counted, wrong = count_rows(intent, readable, copies, self._counting, clients, expected)
            table.mismatches += wrong

    def _compare_quarantine(self, control: Control, intent: Intent) -> tuple[list[Mismatch], list[str]]:
        if (quarantined := intent.of_quarantine) is None:
            return [], []
        records, notes = self._records[control.table_id], list[str]()
        taken = records.list_taken()
        # Rule replayed-verified
        objects = compare_objects(quarantined, control.store, self._clients, lambda key: key not in taken)
        gone = [mismatch for mismatch in objects if mismatch.kind is Kind.OBJECT_GONE]
        if gone and not (isinstance(records.state, TableState) and records.is_whole(records.state)):
            # A load that was started again later has younger records than the replay of its rows.
            notes = [
                f"{format_count(len(gone), 'file')} of the bad rows of load {intent.job_id!r} left the quarantine of "
                f"{control.table_id}: a replay may have loaded them, and the records of some loads are cleared away"
            ]
            objects = [mismatch for mismatch in objects if mismatch not in gone]
        return [*objects, *self._compare_catalog(quarantined).mismatches], notes

    def _compare_catalog(self, intent: Intent) -> Comparison:
        try:
            return open_catalog_writer(intent, self._clients).compare(intent)
        except LakeError as error:
            return Comparison((Mismatch(Kind.NOT_COMPARED, error.message, "", error.code),))

    def _find_path(self, table_id: str, intent: Intent) -> TablePath:
        """Return the table's path; the first load that asks decides how old its objects may be."""
        if table_id not in self._paths:
            since = intent.started - SLACK if self._only_newer else None
            self._paths[table_id] = TablePath(self._records[table_id], self._neighbours, intent, since)
        return self._paths[table_id]


class _Table:
    """The result for one table."""

    def __init__(
        self, mismatches: list[Mismatch], notes: list[str] | None = None, intent: Intent | None = None
    ) -> None:
        self.mismatches, self.notes, self.intent = mismatches, notes or [], intent
        self.counted: RowCount | None = None

    def add_of_catalog(self, mismatches: Sequence[Mismatch], records: LoadRecords) -> None:
        """Add what the catalog, or the object that stands for it, does not show; a note of an abandoned load."""
        if records.is_abandoned and records.intent is not None:
            what = f"load {records.intent.job_id!r} of {records.intent.table_id} was {ABANDONED}, which lacks it"
            self.notes += [f"{what}: {mismatch.message}" for mismatch in mismatches]
        else:
            self.mismatches += mismatches


def _to_table(compared: _Table | LakeError) -> _Table:
    if isinstance(compared, LakeError):
        return _Table([Mismatch(Kind.NOT_COMPARED, compared.message, "", compared.code)])
    return compared


def verify(
    controls: Mapping[str, Control], job_id: str, clients: aws.Clients, counting: Counting | None = None
) -> Verified:
    """Verify one load; see ``Verifier.verify``. Only ``verify_all`` compares objects that are older than the load."""
    return Verifier(controls, clients, counting, only_newer=True).verify(job_id)


def verify_all(
    controls: Mapping[str, Control], clients: aws.Clients, counting: Counting | None = None
) -> Iterator[Verified]:
    """Verify every load whose reports are kept, the oldest first; a difference is reported for the first load only."""
    verifier, reported = Verifier(controls, clients, counting), set[Difference]()
    for job_id in verifier.list_kept_loads():
        verified = verifier.verify(job_id)
        new = tuple(difference for difference in verified.differences if difference not in reported)
        reported.update(new)
        yield verified.model_copy(update={"differences": new})


def choose_exit_code(loads: Sequence[Verified]) -> int:
    """1 where any load differs, otherwise the code of what could not be compared."""
    codes = {load.exit_code for load in loads}
    return EXIT_FAILED if EXIT_FAILED in codes else max(codes, default=EXIT_OK)


def _compare_or_note(compare: Callable[[], tuple[list[Mismatch], list[str]]]) -> tuple[list[Mismatch], list[str]]:
    """Return what ``compare`` finds, or its error as a mismatch, so that the rest of the load is still compared."""
    try:
        return compare()
    except LakeError as error:
        return [Mismatch(Kind.NOT_COMPARED, error.message, "", error.code)], []


def _make_difference(table_id: str, mismatch: Mismatch) -> Difference:
    code = mismatch.code or CODES[mismatch.kind]
    return Difference(table=table_id, key=mismatch.key, kind=mismatch.kind.value, code=code, message=mismatch.message)


class TablePartitions:
    """The partitions of a pipeline's tables; those of one table are listed once for all loads."""

    def __init__(self, clients: aws.Clients) -> None:
        self._clients = clients
        self._listed: dict[tuple[str, str], list[tuple[tuple[str, ...], str]]] = {}

    def compare(self, intent: Intent) -> tuple[list[Mismatch], list[str]]:
        """Return a mismatch for each other partition that contains the files of the load's partition; a note where
        partitions may not be listed."""
        target, name = intent.catalog.find_partition(), intent.catalog.name
        if target is None or name is None:
            return [], []
        try:
            listed = self._list(name, intent)
        except GlueAccessDeniedError as error:
            return [], [
                f"whether another partition has the files of {intent.table_id} too is not known: {error.message}"
            ]
        partition, partition_location = target
        partition_path = f"{partition_location.rstrip('/')}/"
        return [
            Mismatch(
                Kind.PARTITION_FOREIGN,
                f"Glue table {'.'.join(name)}: partition {'/'.join(values)!r} lies at {location!r}, "
                f"with the files of partition {partition!r}, so queries read their rows twice.",
            )
            for values, location in listed
            if values != (partition,) and location and partition_path.startswith(f"{location.rstrip('/')}/")
        ], []

    def _list(self, name: tuple[str, str], intent: Intent) -> list[tuple[tuple[str, ...], str]]:
        if name not in self._listed:
            self._listed[name] = list(find_catalog(intent.catalog).list_partitions(self._clients))
        return self._listed[name]
