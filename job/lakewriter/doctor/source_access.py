"""Look at each table's source as a load opens it: its files, its columns, its first rows."""

import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from lakewriter.aws import ClientError, read_status
from lakewriter.commit.catalog import NoTable
from lakewriter.doctor.message_source import MessageProbes
from lakewriter.doctor.probe import Finding, Probe, run_probes
from lakewriter.doctor.source_columns import (
    describe_seen,
    list_column_findings,
    list_missing_columns,
    list_type_findings,
)
from lakewriter.doctor.surroundings import has_hadoop_aws, is_in_s3
from lakewriter.errors import InternalError, LakeError, SourceFailedError, SourceUnreachableError, SpecInvalidError
from lakewriter.records.state import TableState
from lakewriter.report import format_count
from lakewriter.run.judging import plan_watched
from lakewriter.run.prepare import prepare
from lakewriter.source.databases.database_rows import is_jdbc
from lakewriter.source.feed import explain_need_of_spark
from lakewriter.source.file_look import FileLook, look_at_files
from lakewriter.source.files.file_reader import Hint
from lakewriter.source.files.file_source import has_reader
from lakewriter.source.first_rows import SAMPLE_ROWS, Looker
from lakewriter.source.request import RowsRequest, SparkFactory
from lakewriter.source.spark_jobs import cancel_jobs
from lakewriter.spec.deployment import Deployment
from lakewriter.spec.encodings import TextEncoding
from lakewriter.spec.specification import Spec
from lakewriter.spec.table_spec import Read, TableSpec

SECONDS: Final = 120.0
"""The longest that one look may take, without the start of Spark."""
NOT_FOUND: Final = 404
MOST_FILES: Final = 200
"""Files of one source whose columns are looked at."""
_MOST_TEXT_BYTES: Final = 256 * 1024 * 1024
"""JSON and other text may have so many bytes: Spark reads it whole to find its columns."""
_NEEDS_PACKAGE: Final = "Set spark.jars.packages"
_HADOOP_REMEDY: Final = "Add hadoop-aws of Spark's Hadoop version to spark.jars.packages; EMR has it."

LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True)
class SourceProbes:
    """A probe for each table that is read by itself; ``spark`` is called only where a source needs Spark."""

    spec: Spec
    deployment: Deployment | None
    spark: SparkFactory
    seconds: float = SECONDS
    reads_rows: bool = True
    """False for a canary, which signs in, asks for columns and lists files."""

    def list_probes(self) -> list[Probe]:
        """List the probes; none for streams, which have their messages in common."""
        look = self.check_table if self.reads_rows else self.ask_table
        tables = [table for table in self.spec.tables if table.stream is None]
        return [
            Probe(f"source {table.id}", partial(_skip_given if table.is_given else look, table)) for table in tables
        ]

    def ask_table(self, table: TableSpec) -> Iterator[Finding]:
        """Ask each source of a table whether it lets this process in: no row is read, and nothing kept of the reader.

        A deployment without its files yet is correct, so their absence is a warning.
        """
        name = f"source {table.id}"
        for read in _list_reads(table.read):
            if read.paths:
                yield _ask_for_files(name, read, table.id)
            elif is_jdbc(read):
                bare = _drop_keys(table.model_copy(update={"read": read}))
                yield from _run_within(self.seconds, partial(self._ask_for_columns, name, bare), name)
            else:
                yield Finding(name, "skipped", f"{read.format or 'SQL'}: nothing is asked of it but by a load.")

    def _ask_for_columns(self, name: str, table: TableSpec) -> list[Finding]:
        looker = Looker()
        try:
            looker.open(RowsRequest(self.spark, table))
        except LakeError as error:
            return [_make_failure(name, error)]
        assert looker.feed is not None
        columns = format_count(len(looker.feed.schema), "column")
        return [Finding(name, "ok", f"the database lets this process in, and has {columns}.")]

    def check_table(self, table: TableSpec) -> Iterator[Finding]:
        """Look at the files, then open them as a load does; what is odd comes before what ends the look."""
        name, looks = f"source {table.id}", list[FileLook]()
        odd = list[Finding]()
        for read in _list_reads(table.read):
            try:
                look = look_at_files(read, table.id) if read.paths else FileLook(None)
            except SourceFailedError as error:
                if not self._may_differ(error):
                    raise
                yield Finding(name, "warning", f"{error.message} The job may have other rights.", error.remedy)
                return
            odd += _list_oddities(name, look)
            looks.append(look)
        yield from odd
        look = looks[0] if table.read.sql is None else FileLook(None)
        if (refusal := self._explain_absent_library(name, table)) is not None:
            yield refusal
            return
        bounded, looked_at = _bound_files(table, look)
        if explain_need_of_spark(bounded) is not None:
            self.spark()
        is_odd = any(finding.status == "warning" for finding in odd)
        yield from _run_within(self.seconds, lambda: list(self._open(name, bounded, look, looked_at, is_odd)), name)

    def _may_differ(self, error: SourceFailedError) -> bool:
        """Return True if AWS refused this process what it may grant to the job that the stacks deploy."""
        refused = isinstance(error.__cause__, ClientError) and read_status(error.__cause__) in (401, 403)
        return refused and self._is_deployed

    @property
    def _is_deployed(self) -> bool:
        """True if the stacks run the loads, with other rights, packages and networks than this process has."""
        return self.deployment not in (None, Deployment())

    def _make_failure(self, name: str, error: LakeError) -> Finding:
        """Return a warning where only the job's environment shows whether the read fails: a package, its network."""
        in_network = self.deployment is not None and self.deployment.network is not None
        is_elsewhere = _NEEDS_PACKAGE in error.remedy or (isinstance(error, SourceUnreachableError) and in_network)
        if self._is_deployed and is_elsewhere:
            return Finding(name, "warning", f"{error.message} The job may have what is missing here.", error.remedy)
        return _make_failure(name, error)

    def _explain_absent_library(self, name: str, table: TableSpec) -> Finding | None:
        """Say that Spark here cannot read S3, where it has to; a deployed pipeline runs on EMR, which can."""
        paths = [path for read in _list_reads(table.read) for path in read.paths]
        if not any(map(is_in_s3, paths)) or has_hadoop_aws() or not _is_for_spark(table) or _is_read_by_tasks(table):
            return None
        message = f"table {table.id!r} is read from S3 by Spark, and there is no hadoop-aws library here."
        if self._is_deployed:
            return Finding(name, "warning", f"{message} The columns were not looked at.", _HADOOP_REMEDY)
        return Finding(name, "failed", message, _HADOOP_REMEDY, SourceFailedError.code)

    def _open(
        self, name: str, table: TableSpec, look: FileLook, looked_at: int | None, is_odd: bool
    ) -> Iterator[Finding]:
        looker = Looker()
        try:
            prepared = prepare(self.spec, table, TableState(), NoTable(), self.spark, opener=looker.open)
            plan_watched(self.spec, table, prepared.shape)
        except SpecInvalidError as error:
            missing = self._find_missing(name, table)
            yield from missing or [self._make_failure(name, error)]
            return
        except LakeError as error:
            yield self._make_failure(name, error)
            return
        feed = looker.feed
        assert feed is not None
        try:
            rows = feed.read_first(SAMPLE_ROWS) if _is_sampled(table) else None
        except LakeError as error:
            yield self._make_failure(name, error)
            return
        seen = describe_seen(table, look, looked_at, prepared, rows)
        hints = [note for note in feed.notes if isinstance(note, Hint)]
        for hint in hints:
            yield Finding(name, "warning", f"table {table.id!r}: {hint.message}", hint.remedy)
        yield from list_column_findings(name, table, prepared, rows, seen)
        # Where the first row or the delimiter is in doubt, so is what the columns hold.
        is_csv = isinstance(self.spec.encoding, TextEncoding) and self.spec.encoding.kind == "csv"
        if not (is_odd or hints or is_csv):
            yield from list_type_findings(name, table, rows, seen)

    def _find_missing(self, name: str, table: TableSpec) -> list[Finding]:
        """Find every column that the file names and the source lacks, by opening the source without these keys."""
        looker = Looker()
        try:
            looker.open(RowsRequest(self.spark, _drop_keys(table)))
        except LakeError:
            return []
        return list_missing_columns(name, table, looker.feed.schema.names) if looker.feed is not None else []


def ask_sources(spec: Spec, spark: SparkFactory) -> tuple[Finding, ...]:
    """Ask each source what a check asks it without reading a row, running a connector or keeping a state."""
    tables = SourceProbes(spec, None, spark, reads_rows=False)
    return tuple(run_probes([*tables.list_probes(), *MessageProbes(spec, None).list_probes()]))


def _ask_for_files(name: str, read: Read, table: str) -> Finding:
    try:
        look = look_at_files(read, table, reads_rows=False)
    except SourceFailedError as error:
        if not _is_absent(error):
            raise
        return Finding(name, "warning", error.message, error.remedy)
    if look.missing is not None:
        return Finding(name, "warning", look.missing.message, look.missing.remedy)
    if look.files is None:
        return Finding(name, "skipped", f"only a load lists {', '.join(read.paths)}.")
    return Finding(name, "ok", f"{format_count(len(look.files), 'file')} may be read.")


def _is_absent(error: SourceFailedError) -> bool:
    """Return True if there is nothing at a path, which its listing shows, or S3's 404."""
    cause = error.__cause__
    return cause is None or (isinstance(cause, ClientError) and read_status(cause) == NOT_FOUND)


def _drop_keys(table: TableSpec) -> TableSpec:
    """Return the table without the keys that name columns of its source."""
    keys: dict[str, Any] = {"columns": {}, "deleted": None, "cursor": None, "cursor_lag": None, "partition_by": (),
            "primary_key": (), "unique_key": (), "expect": ()}  # fmt: skip
    return table.model_copy(update=keys)


def _skip_given(table: TableSpec) -> Iterator[Finding]:
    yield Finding(f"source {table.id}", "skipped", "it has no read: a program writes it from a DataFrame.")


def _list_reads(read: Read) -> Iterator[Read]:
    """Yield the reads of a source: the source itself, or those of its views."""
    if read.sql is None:
        yield read
    for view in read.views.values():
        yield from _list_reads(view)


def _is_for_spark(table: TableSpec) -> bool:
    """Return True unless the tasks read the files themselves."""
    return explain_need_of_spark(table) is not None or any(set(path) & set("*?[]{}") for path in table.read.paths)


def _is_read_by_tasks(table: TableSpec) -> bool:
    """Return True where the product's own readers read all files, also for rows that go through Spark."""
    return all(has_reader(read) for read in _list_reads(table.read))


def _is_sampled(table: TableSpec) -> bool:
    """Return True unless the first rows may be long in coming, as those of a broker are."""
    reads = list(_list_reads(table.read))
    return all(read.kind.answers_at_once for read in reads)


def _bound_files(table: TableSpec, look: FileLook) -> tuple[TableSpec, int | None]:
    """Return the table limited to the files that are looked at, and their number."""
    files = look.files
    if files is None or table.read.columns is not None:
        return table, None if files is None else len(files)
    is_text = table.read.kind.types != "stored"
    count, size = 0, 0
    for file in files[:MOST_FILES]:
        size += file.length
        if count and is_text and size > _MOST_TEXT_BYTES:
            break
        count += 1
    has_partitions = any("=" in part for file in files for part in file.path.split("/")[:-1])
    if count == len(files) or has_partitions:
        return table, len(files)
    start = "s3://" if table.read.paths[0].startswith(("s3://", "s3a://")) else ""
    paths = tuple(start + file.path for file in files[:count])
    return table.model_copy(update={"read": table.read.model_copy(update={"path": paths})}), count


def _make_failure(name: str, error: LakeError) -> Finding:
    remedy = error.remedy or f"lakewriter docs {error.code} has more."
    return Finding(name, "failed", error.message, remedy, error.code)


def _list_oddities(name: str, look: FileLook) -> Iterator[Finding]:
    """Yield the oddities of a source's files, though a load may take them."""
    if look.missing is not None:
        yield Finding(name, "warning", look.missing.message, look.missing.remedy)


def _run_within(seconds: float, call: Callable[[], list[Finding]], name: str) -> list[Finding]:
    """Return the call's findings; a warning where the call exceeds its time, and then Spark's jobs are cancelled."""
    done: list[list[Finding]] = []

    def run() -> None:
        try:
            done.append(call())
        except Exception as error:
            LOG.exception("The check %r met a fault of the program.", name)
            done.append([_make_failure(name, InternalError.met(f"check {name!r}", error))])

    # A thread that hangs in a driver must not keep the process alive.
    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    thread.join(seconds)
    if done:
        return done[0]
    cancel_jobs()
    message = f"the source gave neither columns nor its first {format_count(SAMPLE_ROWS, 'row')} in {seconds:g} s."
    return [Finding(name, "warning", message, "A load waits for it. Leave it out of this check with --no-sources.")]
