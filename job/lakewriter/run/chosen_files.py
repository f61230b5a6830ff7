"""Find the source files that a table's earlier loads have read: leave them out, or report that they are read again."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pyspark.sql import SparkSession

from lakewriter.commit.attempt import Attempt
from lakewriter.commit.control import Control
from lakewriter.commit.read_files import Compared, compare_files, join_parts, write_files
from lakewriter.errors import ConcurrentLoadError, InputRepeatedError, SourceFailedError, SpecInvalidError
from lakewriter.receipt import RepeatedFiles
from lakewriter.records.input_records import Inputs, InputsIntent
from lakewriter.records.state import TableState
from lakewriter.report import format_count, join_first
from lakewriter.source import file_listing as sources
from lakewriter.source.file_listing import restrict
from lakewriter.spec.listed_files import ListedFile
from lakewriter.spec.repetition import compares_when_merged
from lakewriter.spec.table_spec import Mode, Read, TableSpec

SparkFactory = Callable[[], SparkSession]

_NOTHING: Final = Compared()
_MOST_NAMED: Final = 3


@dataclass(frozen=True)
class Chosen:
    """The part of a table's source that a load reads.

    table     with the files that are read
    listed    all files that are there, None where the source has none, or where they could not be listed
    files     those of them that the load reads
    compared  what earlier loads have read of ``listed``
    before    the record of these loads; None where none is kept
    """

    table: TableSpec
    listed: tuple[ListedFile, ...] | None = None
    files: tuple[ListedFile, ...] = ()
    compared: Compared = _NOTHING
    before: Inputs | None = None

    @property
    def goes_by_record(self) -> bool:
        """True if the load is valid only while no other load has read more files."""
        return self.listed is not None and bool(self.table.read.new_files or self.table.repeated == "fail")

    @property
    def repeated(self) -> RepeatedFiles | None:
        """Counts of the files that are read again; None for a table whose loads append no rows again."""
        if not compares_files(self.table) or (self.table.stream is not None and self.listed is None):
            return None
        is_allowed = self.table.repeated == "allow"
        if self.listed is None or self.before is None:
            return RepeatedFiles(allowed=is_allowed)
        again = {file.uri for file in self.files} & self.compared.again
        return RepeatedFiles(
            files=len(self.files),
            again=len(again),
            changed=len({file.uri for file in self.files} & self.compared.changed),
            left_out=len(self.listed) - len(self.files),
            allowed=is_allowed,
        )

    def describe(self, committed: int) -> str | None:
        """Describe for a user what a load appends again, after ``committed`` loads; None where it appends nothing
        again.

        The sentence begins with the reason why the table is read whole.
        """
        repeated = self.repeated
        if repeated is None or self.table.repeated == "allow":
            return None
        if self.table.read.new_files:
            changed = format_count(repeated.changed, "file")
            return (
                f"{changed} changed since an earlier load has read them, and come whole" if repeated.changed else None
            )
        if self.table.stream is not None:
            files = format_count(repeated.files or 0, "file")
            return f"records of {repeated.again:,} of {files} are appended again" if repeated.again else None
        if self.table.mode is Mode.MERGE or self.table.repeated == "fail":
            return None
        if not committed:
            return "no cursor: each load after this one appends all rows of the source again"
        text = f"no cursor: all rows of the source are appended again, as by {format_count(committed, 'load')} before"
        if repeated.files is None:
            return text
        files = format_count(repeated.files, "file")
        return f"{text}; an earlier load has read {repeated.again:,} of its {files}" if repeated.again else text

    def make_intent(self, control: Control, attempt: Attempt, rows: int, *, is_exact: bool) -> InputsIntent | None:
        """Write which files the load is the first to read, and return what its intent says of them; None where nobody
        knows. Unless the list ``is_exact``, the load may have read more."""
        before = self.before
        if before is None or (self.listed is None and any(read.is_of_files for read in self.table.read.leaves)):
            return None
        repeated = self.repeated or RepeatedFiles()
        if repeated.again and repeated.again == repeated.files:
            repeated = repeated.model_copy(update={"rows": rows})
        new = [file for file in self.files if file.uri not in self.compared.again]
        return InputsIntent(
            before=before,
            adds=write_files(control, attempt.id, attempt.job_id, new),
            joined=join_parts(control, attempt.id, before),
            # Rule files-exclusive
            exclusive=self.goes_by_record,
            is_partial=not is_exact,
            repeated=repeated,
        )


def is_appended(table: TableSpec) -> bool:
    """Return True for a table whose loads read its source whole, and append what they read."""
    is_kept = table.stream is None or not table.stream.minimum_generation_id
    return table.cursor is None and table.mode is Mode.APPEND and is_kept


def compares_files(table: TableSpec) -> bool:
    """Return True for a table whose loads compare its source's files with those that earlier loads have read."""
    return is_appended(table) or compares_when_merged(table)


def may_repeat(table: TableSpec) -> bool:
    """Return True for a table whose loads each append all rows of its source again, unless the file allows it, or
    refuses it."""
    is_asked_for = table.is_given or table.read.new_files or table.repeated != "warn"
    return table.stream is None and is_appended(table) and not is_asked_for


def choose_messages(control: Control, table: TableSpec, state: TableState, files: tuple[ListedFile, ...]) -> Chosen:
    """Compare the files of messages that a stream is read from with those that its earlier loads have read.

    ``INPUT_REPEATED`` where the load would read one again, and ``repeated`` is ``fail``.
    """
    if not is_appended(table):
        return Chosen(table)
    before = state.inputs or (None if state.is_loaded else Inputs(committed=state.committed))
    compared = compare_files(control, before, files) if before is not None else _NOTHING
    if table.repeated == "fail":
        _refuse_repeated(table, files, compared)
    return Chosen(table, files, files, compared, before)


def choose_inputs(control: Control, table: TableSpec, state: TableState, spark: SparkFactory) -> Chosen:
    """Choose the files that a load of a table reads now.

    ``INPUT_REPEATED`` where it would read again what ``repeated: fail`` refuses. ``SPEC_INVALID`` for it and for
    ``files: new`` where nobody knows which files earlier loads have read.
    """
    if not compares_files(table) or table.is_given or table.stream is not None:
        return Chosen(table)
    before = state.inputs or (None if state.is_loaded else Inputs(committed=state.committed))
    new = table.read.new_files
    # Rule files-unknown
    if (new or table.repeated == "fail") and not (state.knows_inputs or not state.is_loaded):
        raise _make_unknown_error(table, state)
    reads = new or table.read.leaves
    lists = _list_all(table, reads, spark)
    if lists is None:
        return Chosen(table, before=before)
    listed = _join(lists)
    compared = compare_files(control, before, listed) if before is not None else _NOTHING
    left_out = compared.again if new else frozenset[str]()
    files = tuple(file for file in listed if file.uri not in left_out)
    if table.repeated == "fail":
        _refuse_repeated(table, files, compared)
    read = restrict(table.read, *_select_files(lists, left_out, is_new=bool(new)))
    return Chosen(table.model_copy(update={"read": read}), listed, files, compared, before)


def list_all_files(table: TableSpec, spark: SparkFactory) -> tuple[ListedFile, ...]:
    """List the files that count as read once a load has read them; ``SPEC_INVALID`` for a table without any."""
    lists = _list_all(table, table.read.new_files or table.read.leaves, spark)
    if lists is None:
        raise SpecInvalidError(
            f"table {table.id!r} has a source of which no files can be listed.",
            remedy="Files can be noted of tables that read a path of files.",
        )
    return _join(lists)


_Lists = dict[int, tuple[tuple[ListedFile, ...], bool]]


def _join(lists: _Lists) -> tuple[ListedFile, ...]:
    return tuple({file.uri: file for files, _ in lists.values() for file in files}.values())


def _select_files(
    lists: _Lists, left_out: frozenset[str], *, is_new: bool
) -> tuple[dict[int, tuple[ListedFile, ...]], dict[int, ListedFile]]:
    """Select the files of each read, by its ``id``. A read without any files left keeps the one that gives its
    columns."""
    chosen, samples = dict[int, tuple[ListedFile, ...]](), dict[int, ListedFile]()
    for prefix, (listed_files, is_own) in lists.items():
        remaining = tuple(file for file in listed_files if file.uri not in left_out)
        if remaining and (is_new or is_own):
            chosen[prefix] = remaining
        elif listed_files and not remaining:
            samples[prefix] = max(listed_files, key=lambda file: (file.modified, file.uri))
    return chosen, samples


def _list_all(table: TableSpec, reads: tuple[Read, ...], spark: SparkFactory) -> _Lists | None:
    """List the files of each read, by its ``id``; None where one of them has no files, or they cannot be listed."""
    lists = {}
    for read in reads:
        if not read.is_of_files:
            return None
        try:
            lists[id(read)] = sources.list_inputs(read, table.id, spark)
        except SourceFailedError:
            if table.read.new_files:
                raise
            # The table's own read reports what is wrong with the source.
            return None
    return lists


def is_as_listed(chosen: Chosen, spark: SparkFactory, *, is_of_spark: bool) -> bool:
    """Look at the source's files once they are read; return True where the load has read no other files than listed.

    ``CONCURRENT_LOAD`` where a load that uses its list has read a file that was replaced meanwhile. ``is_of_spark``
    says that Spark has listed the files for itself.
    """
    if chosen.listed is None or not (chosen.goes_by_record or is_of_spark):
        return True
    table = chosen.table
    lists = _list_all(table, table.read.new_files or table.read.leaves, spark) or {}
    now = {file.uri: file for files, _ in lists.values() for file in files}
    replaced = [
        file.uri for file in chosen.files if (other := now.get(file.uri)) and not other.is_untouched_since(file)
    ]
    arrived = now.keys() - {file.uri for file in chosen.listed}
    if not table.read.new_files or not chosen.listed:
        # Spark may have read these as well.
        replaced += sorted(arrived) if chosen.goes_by_record else []
    # Rule files-as-listed
    if chosen.goes_by_record and replaced:
        raise ConcurrentLoadError(
            f"table {table.id}: {join_first(replaced, _MOST_NAMED)} came or changed while the load read its source; "
            "nothing of this attempt was published.",
            remedy="Run the same job id again.",
        )
    return bool(table.read.new_files) or not arrived


def _refuse_repeated(table: TableSpec, files: tuple[ListedFile, ...], compared: Compared) -> None:
    """Raise ``INPUT_REPEATED`` where the load would append rows of files again that the table has."""
    uris = [file.uri for file in files]
    again = [uri for uri in uris if uri in compared.again]
    changed = [uri for uri in uris if uri in compared.changed] if table.read.new_files else []
    if again:
        raise InputRepeatedError(
            f"table {table.id!r}: an earlier load has read {len(again):,} of its {format_count(len(uris), 'file')}, "
            f"and repeated is 'fail': {join_first(again, _MOST_NAMED)}.",
            remedy=f"{describe_ways(table)} Or append them again: repeated: warn.",
        )
    if changed:
        raise InputRepeatedError(
            f"table {table.id!r}: {format_count(len(changed), 'file')} changed since an earlier load has read them: "
            f"{join_first(changed, _MOST_NAMED)}.",
            remedy="Give what is new a name of its own; or load changed files whole, with repeated: warn; or undo the "
            "load that has read them.",
        )


def describe_ways(table: TableSpec) -> str:
    """Say how a table's loads can read only what is new."""
    new = "read: {files: new}, " if all(read.is_of_files for read in table.read.leaves) else ""
    return f"A cursor, {new}or a mode that replaces rows keeps them from coming again."


def _make_unknown_error(table: TableSpec, state: TableState) -> SpecInvalidError:
    loads = format_count(state.committed, "load")
    way = "reads 'files: new'" if table.read.new_files else "has repeated: fail"
    return SpecInvalidError(
        f"table {table.id!r} {way}, and nobody has noted all files that its {loads} so far have read.",
        remedy=f"Say which they are: lakewriter reset LAKE {table.id} --reason TEXT with --files-read (all that are "
        "there now), --files-unread (none: all are to be loaded), or --files-noted (those that are noted).",
    )
