"""Load the rows of a table's quarantine; the files that a load has taken leave the quarantine in the same change."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Final

from lakewriter.aws import get_shared_clients
from lakewriter.commit.at_once import call_all
from lakewriter.commit.conditional_writes import S3Store
from lakewriter.commit.control import Control
from lakewriter.commit.store import Entry
from lakewriter.errors import ConcurrentLoadError, SpecInvalidError
from lakewriter.expect.failing_rows import RowCheck
from lakewriter.records.facets import Removal
from lakewriter.run.kinds import Plain
from lakewriter.source.quarantined import read_quarantined, read_quarantined_records
from lakewriter.source.request import Feed, RowsRequest
from lakewriter.source.spark_rows import open_frame
from lakewriter.spec.access import Access
from lakewriter.spec.expectations import Expectation, NullShare
from lakewriter.spec.load_ids import make_replay_job_id
from lakewriter.spec.quarantine_names import make_check_prefix
from lakewriter.spec.row_rules import BadRows
from lakewriter.spec.specification import Spec
from lakewriter.spec.table_spec import Mode, TableSpec


@dataclass(frozen=True)
class Chosen:
    """A choice of a quarantine's rows: those of one check, of loads that began no earlier than a time; None for all."""

    check: str | None = None
    since: datetime | None = None

    def has(self, folder: str, entry: Entry) -> bool:
        """Return whether a file is among them, as far as its name and its age say."""
        name = entry.key.removeprefix(f"{folder}/")
        is_file = "/" not in name and name.endswith(".parquet")
        is_due = self.since is None or entry.modified >= self.since.replace(microsecond=0)
        return is_file and is_due and (self.check is None or name.startswith(make_check_prefix(self.check)))


def find_files(control: Control, table: TableSpec, chosen: Chosen) -> tuple[Removal, ...]:
    """Find the files of the table's quarantine that loads of this pipeline have written; each is that of a load which
    is committed, unless one is pending."""
    folder = str(table.quarantine)
    entries = [entry for entry in control.store.list_entries(f"{folder}/") if chosen.has(folder, entry)]
    stored = call_all(control.store.find, [entry.key for entry in entries])
    own_files = [
        Removal(key=entry.key, etag=stored_object.etag)
        for entry, stored_object in zip(entries, stored, strict=True)
        # Rule taken-own
        if stored_object is not None and stored_object.load.startswith(f"{control.keys.pipeline}/")
    ]
    return tuple(sorted(own_files, key=lambda file: file.key))


def require_replayable(spec: Spec, table: TableSpec) -> None:
    """Raise ``SPEC_INVALID`` for a table whose quarantine cannot be loaded."""
    for is_so, why, remedy in _HINDRANCES:
        if is_so(spec, table):
            raise SpecInvalidError(f"table {table.id!r} cannot be replayed: {why}.", remedy=remedy)


_HINDRANCES: Final[Sequence[tuple[Callable[[Spec, TableSpec], bool], str, str]]] = (
    (
        lambda _, table: table.quarantine is None,
        "it has no quarantine",
        "Set on_bad_row: quarantine; rows that are set aside are no table.",
    ),
    (
        lambda _, table: not table.mode.brings_changes or _is_refreshed(table),
        "a load replaces what is there",
        "Correct the rows at the source, and load the table again.",
    ),
    (
        lambda _, table: table.envelope is not None,
        "its rows are made of change events, which a quarantine has beside rows that were made of them",
        "Write the events of its rows into a file of the source: a load takes an event that it has had once more.",
    ),
    (
        lambda _, table: table.stream is not None and table.mode is Mode.MERGE and not table.order_by,
        "its records are newer than others by their arrival, and one that is replayed would be newer than all",
        "Correct the records at the source, and sync the stream again.",
    ),
    (
        lambda _, table: table.is_given,
        "a program gives its rows, and nothing says which columns they have now",
        "Write them again with lakewriter.write.",
    ),
)


def _is_refreshed(table: TableSpec) -> bool:
    """Return whether the catalog asks for a sync that deletes older generations."""
    return table.stream is not None and bool(table.stream.minimum_generation_id)


def is_of_single_rows(expectation: Expectation) -> bool:
    """Return whether a check decides on each row by itself."""
    return isinstance(expectation, RowCheck) and not (isinstance(expectation, NullShare) and expectation.at_most)


@dataclass(frozen=True)
class Replay:
    """A replay of these files; the same files always have the same ``job_id``."""

    spec: Spec
    table: TableSpec
    files: tuple[Removal, ...]
    chosen: Chosen

    @property
    def job_id(self) -> str:
        """The load's job id."""
        return make_replay_job_id((file.key, file.etag) for file in self.files)

    def make_kind(self, control: Control) -> Plain:
        """Return the kind of load that a replay is."""
        return Plain(partial(self._open, control), self.files)

    def make_spec(self) -> Spec:
        """Return the pipeline with this table alone. Checks of a whole load do not apply to some rows of other loads.
        Rows that are still bad return to the quarantine, however many they are."""
        expect = tuple(expectation for expectation in self.table.expect if is_of_single_rows(expectation))
        apart = BadRows(action="quarantine", at_most=1)
        table = self.table.model_copy(update={"expect": expect, "on_bad_row": apart})
        return self.spec.model_copy(update={"tables": (table,)})

    def _open(self, control: Control, request: RowsRequest) -> Feed:
        """Open the feed, once the load is registered: any change of the quarantine from now on keeps the load from
        being bound. The cursor has passed these rows, so its condition is left out of the request."""
        table = request.table
        # Rule replay-looks-again
        if find_files(control, table, self.chosen) != self.files:
            raise _make_changed_error(table.id)
        read = partial(_read_file, self.spec.access, table.id)
        read_rows = read_quarantined if table.stream is None else read_quarantined_records
        rows = read_rows(request.spark, table, read, [file.key for file in self.files])
        return open_frame(rows, replace(request, condition=None))


def _read_file(access: Access, table_id: str, key: str) -> bytes:
    """Read a file, in a task; it is gone if a load or an undo that took it has committed meanwhile."""
    content = S3Store(get_shared_clients(access)).get(key)
    if content is None:
        raise _make_changed_error(table_id)
    return content[0]


def _make_changed_error(table_id: str) -> ConcurrentLoadError:
    return ConcurrentLoadError(
        f"table {table_id}: another load changed its quarantine while it was replayed; nothing was loaded.",
        remedy="Run the replay again.",
    )
