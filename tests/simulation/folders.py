"""Folders that get new files: what stands in for the listing of a table that reads ``files: new``."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lakewriter.source import file_listing
from lakewriter.spec.listed_files import ListedFile
from lakewriter.spec.table_spec import Read

if TYPE_CHECKING:
    from tests.simulation.source import Session

_LIST: Final = file_listing.list_inputs
_SECOND: Final = 1_000_000_000


@dataclass
class Folder:
    """The files of one table's source, each with the numbers of its rows."""

    rng: random.Random
    files: dict[str, ListedFile] = field(default_factory=dict)
    rows: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def list_files(self, *, is_calm: bool) -> tuple[ListedFile, ...]:
        """What is there now; perhaps files have come since, or one was copied there once more, unless all is calm."""
        for _ in range(self.rng.choice([0, 0, 1, 1, 2])):
            self._add()
        if self.files and self.rng.random() < 0.1 and not is_calm:
            uri = self.rng.choice(sorted(self.files))
            self.files[uri] = replace(self.files[uri], modified=self.files[uri].modified + _SECOND)
        # Nobody promises an order.
        return tuple(self.rng.sample(list(self.files.values()), len(self.files)))

    def _add(self) -> None:
        uri, first = f"s3://source/{len(self.files):04d}.csv", sum(map(len, self.rows.values()))
        self.rows[uri] = tuple(range(first, first + self.rng.randint(0, 2)))
        self.files[uri] = ListedFile(uri, len(self.rows[uri]), f"etag of {uri}", len(self.files) * _SECOND)

    def read(self, read: Read) -> tuple[int, ...]:
        """The rows of those files that the product has chosen; none where they only give the columns."""
        listed = () if read.is_empty else read.listed or ()
        return tuple(number for file in listed for number in self.rows[file.uri])


def list_inputs(read: Read, table: str, spark: "Callable[[], Session]") -> tuple[tuple[ListedFile, ...], bool]:
    """Stands in for the product's, of tables that read new files alone."""
    if read.files != "new":
        listed, is_whole = _LIST(read, table, spark)  # type: ignore[arg-type]
        # Each process plays in a folder of its own, whose name is in no record.
        return tuple(replace(file, uri=Path(file.uri).name) for file in listed), is_whole
    session = spark()
    sources = session.sources
    return sources.find_folder(session.pipeline, table).list_files(is_calm=sources.is_calm), True
