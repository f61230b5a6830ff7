"""Plan which columns of a table a load renames: those that lake.yaml says the source called otherwise before."""

from collections.abc import Sequence
from dataclasses import dataclass

from lakewriter.errors import SpecInvalidError
from lakewriter.naming import NameRule
from lakewriter.receipt import GivenName
from lakewriter.records.state import TableState
from lakewriter.shape.kept_names import add_renamed
from lakewriter.spec.table_spec import TableSpec


@dataclass(frozen=True)
class _Rename:
    """A column's names in the source, before and now, and those that it is written under."""

    before: str
    now: str
    written_before: str
    written: str


@dataclass(frozen=True)
class Renames:
    """The renames of one load, of which earlier loads may have made some; ``loaded`` are the columns of these loads."""

    table_id: str
    columns: tuple[_Rename, ...]
    loaded: frozenset[str]

    @classmethod
    def plan(cls, table: TableSpec, state: TableState, rule: NameRule) -> "Renames":
        """Plan the renames of a table. A load without a new file has none: its columns are those of files that earlier
        loads have read."""
        given = {entry.source: entry.name for entry in state.names or () if not entry.within}
        is_idle = any(read.is_empty for read in table.read.leaves)
        columns = (
            _Rename(
                before,
                now,
                given.get(before) or rule.make(before),
                given.get(now) or table.names.get(now) or rule.make(now),
            )
            for now, before in ({} if is_idle else table.renamed_from).items()
        )
        return cls(table.id, tuple(columns), frozenset(given))

    @property
    def written(self) -> dict[str, str]:
        """The written names that differ: those after by those before."""
        pairs = ((column.written_before, column.written) for column in self.columns)
        return {before: after for before, after in pairs if before.lower() != after.lower()}

    def apply(self, names: tuple[GivenName, ...] | None) -> tuple[GivenName, ...] | None:
        """Return the names of a table's columns under what these are called now; the catalog has their types."""
        for column in self.columns:
            names = names and add_renamed(names, column.before, column.now, column.written)
        return names

    def require_source(self, sources: Sequence[str]) -> None:
        """Raise ``SPEC_INVALID`` where a column still has its old name in the source, or has none of both and was never
        loaded by the new one."""
        folded = {source.lower() for source in sources}
        for column in self.columns:
            line = f"tables.{self.table_id}.columns says that {column.now!r} was renamed from {column.before!r}"
            if column.before.lower() in folded:
                raise SpecInvalidError(
                    f"{line}, and the source has a column {column.before!r}.",
                    remedy="Load what has the old name before the line is there; or leave renamed_from out: the column "
                    "is then added as a new one.",
                )
            if column.now.lower() not in folded and column.now not in self.loaded:
                raise SpecInvalidError(
                    f"{line}, and the source has no column {column.now!r}.",
                    remedy="Give the column the name that it has in the source now.",
                )
