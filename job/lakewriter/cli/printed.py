"""The objects that commands print with ``--json`` and that nothing below the command line makes."""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from lakewriter.control_object import sparse
from lakewriter.errors import LakeError
from lakewriter.operate.adoption import LeftFiles
from lakewriter.operate.health import Health
from lakewriter.operate.sql_text import Query
from lakewriter.operate.undo import Undoing
from lakewriter.operate.undo_plan import View
from lakewriter.operate.verification import Verified
from lakewriter.pages.load_record import LoadRecord
from lakewriter.policy.roles import Role
from lakewriter.receipt import Cursor
from lakewriter.records.state import Pending, TableState
from lakewriter.report import TableReport
from lakewriter.spec.load_ids import make_next_job_id, make_undo_job_id
from lakewriter.spec.model import Model

if TYPE_CHECKING:
    # It imports PyIceberg, which takes a second.
    from lakewriter.commit.iceberg.compact_groups import Choice
    from lakewriter.commit.iceberg.orphans import Orphans
    from lakewriter.operate.upkeep import UpkeepDone, UpkeepPlan


class HealthReport(Model):
    """The health of a pipeline: ``continuous`` is the health of its continuous run, null where there was none."""

    continuous: str | None
    waiting: tuple[str, ...]
    unreadable: Mapping[str, str]
    exit_code: int


class StatusReport(Model):
    """The output of ``lakewriter status --json``; ``continuous`` is the content of ``continuous.json``."""

    version: Literal[1] = 1
    tables: Mapping[str, TableState]
    continuous: Mapping[str, Any] | None
    health: HealthReport

    @classmethod
    def of(
        cls, states: Mapping[str, TableState], continuous: Mapping[str, Any] | None, health: Health
    ) -> "StatusReport":
        """Return the report of the tables whose state can be read, and of what ``health`` says of the others."""
        report = HealthReport(
            continuous=health.run,
            waiting=health.waiting,
            unreadable=_describe(health.unreadable),
            exit_code=health.exit_code,
        )
        return cls(tables=states, continuous=continuous, health=report)


class VerifiedLoads(Model):
    """The output of ``lakewriter verify --all --json``."""

    version: Literal[1] = 1
    loads: tuple[Verified, ...]


class PolicyReport(Model):
    """The output of ``lakewriter policy --json``; the bucket's policy is for its owner, where the job's role is not."""

    version: Literal[1] = 1
    roles: tuple[Role, ...]
    bucket_policy: Mapping[str, Any] | None = sparse(None)


class LoadSummary(Model):
    """One load in ``lakewriter history --json``; ``seconds`` is null where its process did not report,
    ``repeated`` where nothing is appended again. ``attempts`` counts those that have left an ending."""

    job_id: str
    status: str
    started: datetime | None
    finished: datetime | None
    seconds: float | None
    tables: int
    failed_tables: int
    rows: int
    rows_set_aside: int
    files: int
    bytes: int
    code: str | None
    repeated: str | None = None
    attempts: int = 1

    @classmethod
    def of(cls, record: LoadRecord) -> "LoadSummary":
        """Return the sums of a load's record."""
        return cls(
            job_id=record.job_id,
            status=record.status,
            started=record.started,
            finished=record.finished,
            seconds=record.seconds,
            tables=len(record.tables),
            failed_tables=sum(table.status == "failed" for table in record.tables),
            **asdict(record.sums),
            code=record.code,
            repeated=record.repeated,
            attempts=1 + len(record.earlier),
        )


class HistoryReport(Model):
    """The output of ``lakewriter history --json``, the newest load first."""

    version: Literal[1] = 1
    pipeline: str
    loads: tuple[LoadSummary, ...]


class ShownLoad(Model):
    """The output of ``lakewriter show --json``: the record of one load."""

    version: Literal[1] = 1
    load: LoadRecord


class SqlColumn(Model):
    """A column of ``lakewriter sql --json``, with its type in Arrow's words."""

    name: str
    type: str


class SqlReport(Model):
    """The output of ``lakewriter sql --json``: numbers, booleans and nulls are JSON's, all other values are texts."""

    version: Literal[1] = 1
    engine: str
    columns: tuple[SqlColumn, ...]
    rows: tuple[tuple[Any, ...], ...]


class QueriesReport(Model):
    """The output of ``lakewriter queries --json``."""

    version: Literal[1] = 1
    queries: tuple[Query, ...]


def _describe(errors: Mapping[str, LakeError]) -> dict[str, str]:
    return {table_id: str(error) for table_id, error in errors.items()}


class UndoneTable(Model):
    """One load of one table in ``lakewriter undo --json``.

    status        ``pending`` where another change has to be finished before an undo can be planned; ``finished`` where
                  an earlier call had left the undo pending, and it was finished now
    view          how readers see it go: with a snapshot, with a partition, or file by file
    requests      about how many requests to AWS the undo needs
    kept_minutes  how long its files stay for queries that began before
    """

    table: str
    job_id: str
    status: Literal["planned", "pending", "undone", "finished", "already_undone"]
    next: str
    view: View = "nothing"
    rows: int = 0
    files: int = 0
    requests: int = 0
    kept_minutes: int = 0
    cursor_before: str | None = None
    cursor_after: str | None = None
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, undoing: Undoing, *, planned: bool) -> "UndoneTable":
        """Return what is planned, or was done."""
        plan, following = undoing.plan, make_next_job_id(undoing.job_id)
        if plan is None:
            notes = () if undoing.pending is None else (_describe_pending(undoing.pending, undoing.job_id),)
            status = "pending" if notes else "finished" if undoing.is_finished else "already_undone"
            return cls(table=undoing.table_id, job_id=undoing.job_id, status=status, next=following, notes=notes)
        return cls(
            table=undoing.table_id,
            job_id=undoing.job_id,
            status="planned" if planned else "undone",
            next=following,
            view=plan.view,
            rows=plan.undone.rows,
            files=plan.undone.files,
            requests=plan.requests,
            kept_minutes=round(plan.undone.grace_seconds / 60),
            cursor_before=_show(plan.cursor_before),
            cursor_after=_show(plan.cursor_after),
            notes=plan.notes,
        )


class UndoReport(Model):
    """The output of ``lakewriter undo --json``; ``next`` is the job id that loads the rows again."""

    version: Literal[1] = 1
    job_id: str
    planned: bool
    next: str
    tables: tuple[UndoneTable, ...]


class MendedTable(Model):
    """The change made to one table; ``unknown`` is what a person has to look at before its next load."""

    table: str
    done: tuple[str, ...]
    unknown: tuple[str, ...] = ()


class MendReport(Model):
    """The output of ``abandon``, ``reset`` and ``rebuild`` with ``--json``."""

    version: Literal[1] = 1
    tables: tuple[MendedTable, ...]


class AdoptReport(Model):
    """Output of ``adopt`` with ``--json``; ``states`` has the tables that were written, and whether they changed."""

    version: Literal[1] = 1
    tables: tuple[LeftFiles, ...]
    states: dict[str, bool]


class LocalReport(Model):
    """The output of ``lakewriter local start`` and ``stop`` with ``--json``; ``running`` says whether it runs now."""

    version: Literal[1] = 1
    running: bool
    folder: str
    endpoint: str | None = None
    access_key_id: str | None = None
    secret_access_key: str | None = None
    region: str | None = None
    bucket: str | None = None
    catalog: str | None = None
    """The URL of the Iceberg REST catalog; null where the file's tables are not Iceberg's."""
    warehouse: str | None = None


class PublishReport(Model):
    """The output of ``lakewriter publish --json``: files and bytes that were uploaded, files that were ``present``
    before, and the URL of each stack's template."""

    version: Literal[1] = 1
    uploaded: int
    present: int
    bytes: int
    templates: dict[str, str]


class InitReport(Model):
    """Output of ``lakewriter init --json``; ``notes`` are what its user should know, ``problems`` what is missing."""

    version: Literal[1] = 1
    file: str
    beside: tuple[str, ...]
    pipeline: str
    tables: tuple[str, ...]
    notes: tuple[str, ...]
    problems: tuple[str, ...]


def _describe_pending(pending: Pending, job_id: str) -> str:
    if pending.job_id == make_undo_job_id(job_id):
        return f"its undo is pending ({pending.phase}): without --plan it is finished"
    return (
        f"{pending.job_id} is pending ({pending.phase}): without --plan it is finished first, then the undo is planned"
    )


def _show(cursor: Cursor | None) -> str | None:
    return cursor.text if cursor is not None else None


class CompactReport(Model):
    """The output of ``lakewriter compact --json``.

    status        ``nothing`` where no files are worth replacing
    files, bytes  the files that are replaced, by about as many as there are ``groups``
    delete_files  files with deletes: those that apply to these files, and once it is done those that left the table
    deletes       deleted rows that no file has any more
    dropped       groups that were left as they are, since others changed their files meanwhile
    waiting       groups beyond the budget; known while it is planned
    foreign       files that are left: of earlier partition fields, or not Parquet; known while it is planned
    pending       the change that is finished before files are chosen again; known while it is planned
    """

    version: Literal[1] = 1
    table: str
    status: Literal["planned", "done", "nothing"]
    job_id: str | None = None
    groups: int = 0
    files: int = 0
    files_after: int = 0
    bytes: int = 0
    bytes_after: int = 0
    delete_files: int = 0
    deletes: int = 0
    dropped: int = 0
    waiting: int = 0
    foreign: int = 0
    pending: str | None = sparse(None)
    done: str | None = None

    @classmethod
    def plan(cls, table_id: str, choice: "Choice", pending: Pending | None) -> "CompactReport":
        """Return what would be replaced."""
        groups = choice.groups
        return cls(
            table=table_id,
            status="planned" if groups else "nothing",
            groups=len(groups),
            files=sum(len(group.files) for group in groups),
            bytes=sum(group.bytes for group in groups),
            delete_files=len({path for group in groups for path in group.deletes}),
            waiting=choice.waiting,
            foreign=choice.foreign,
            pending=pending and f"{pending.job_id} ({pending.phase})",
        )

    @classmethod
    def of(cls, table_id: str, report: TableReport | None) -> "CompactReport":
        """Return what was done."""
        if report is None or report.compacted is None:
            return cls(table=table_id, status="nothing")
        counts = report.compacted
        return cls(
            table=table_id,
            status="done",
            job_id=report.job_id,
            files=counts.files,
            files_after=counts.files_after,
            bytes=counts.bytes,
            bytes_after=counts.bytes_after,
            delete_files=counts.delete_files,
            deletes=counts.deletes,
            dropped=len(counts.dropped),
            done=counts.describe(),
        )


class ExpiredPart(Model):
    """The snapshots that left a table, and the ``refs``: branches and tags whose own time has passed. ``files`` of
    ``bytes`` are those that no other snapshot has; ``undos`` are the loads that can no longer be undone."""

    snapshots: int = 0
    refs: int = 0
    files: int = 0
    bytes: int = 0
    undos: tuple[str, ...] = ()


class OrphansPart(Model):
    """The files in a table's folders that nothing names; ``others`` are left, since they lie in folders of others."""

    files: int
    bytes: int
    others: int


class MaintainedTable(Model):
    """One table in the output of ``lakewriter maintain --json``; a part that is not asked for is left out.

    status         ``failed`` with ``code`` and ``message``: what came before the error is done
    pending        the change that is finished first; known while it is planned
    """

    table: str
    status: Literal["planned", "done", "nothing", "failed"]
    compaction: CompactReport | None = sparse(None)
    expiry: ExpiredPart | None = sparse(None)
    orphans: OrphansPart | None = sparse(None)
    pending: str | None = sparse(None)
    code: str | None = sparse(None)
    message: str | None = sparse(None)

    @classmethod
    def plan(cls, table_id: str, plan: "UpkeepPlan", pending: Pending | None) -> "MaintainedTable":
        """Return what would be done."""
        expiry = None
        if plan.expiry is not None and plan.unused is not None:
            intent = plan.expiry.intent
            expiry = ExpiredPart(
                snapshots=len(intent.snapshots),
                refs=len(intent.refs),
                files=len(plan.unused),
                bytes=plan.unused.bytes,
                undos=intent.undos,
            )
        compaction = CompactReport.plan(table_id, plan.compaction, pending) if plan.compaction is not None else None
        named = f"{pending.job_id} ({pending.phase})" if pending is not None else None
        return cls._make(table_id, "planned", compaction, expiry, plan.orphans, named)

    @classmethod
    def of(cls, table_id: str, done: "UpkeepDone") -> "MaintainedTable":
        """Return what was done."""
        compaction = CompactReport.of(table_id, done.compaction) if done.compaction is not None else None
        expiry = ExpiredPart() if done.expiries else None
        for report in done.expiries:
            counts = report.expired
            if expiry is not None and counts is not None:
                expiry = ExpiredPart(
                    snapshots=expiry.snapshots + counts.snapshots,
                    refs=expiry.refs + counts.refs,
                    files=expiry.files + counts.files,
                    bytes=expiry.bytes + counts.bytes,
                )
        return cls._make(table_id, "done", compaction, expiry, done.orphans, None)

    @classmethod
    def _make(
        cls,
        table_id: str,
        status: Literal["planned", "done"],
        compaction: CompactReport | None,
        expiry: ExpiredPart | None,
        orphans: "Orphans | None",
        pending: str | None,
    ) -> "MaintainedTable":
        part = None
        if orphans is not None:
            part = OrphansPart(files=len(orphans.entries), bytes=orphans.bytes, others=orphans.others)
        is_some = (
            (compaction is not None and compaction.status != "nothing")
            or (expiry is not None and bool(expiry.snapshots or expiry.refs))
            or (part is not None and bool(part.files))
        )
        return cls(
            table=table_id,
            status=status if is_some else "nothing",
            compaction=compaction,
            expiry=expiry,
            orphans=part,
            pending=pending,
        )


class MaintainReport(Model):
    """The output of ``lakewriter maintain --json``."""

    version: Literal[1] = 1
    tables: tuple[MaintainedTable, ...]
