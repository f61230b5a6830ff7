"""One Iceberg table: found, made, evolved; every commit is looked for before it is tried again."""

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa
from pyiceberg.exceptions import (
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.table import Table

from job import aws
from job.commit.iceberg.catalogs import LostRace, UnclearCommit, explained, open_catalog
from job.commit.intent import IcebergAction
from job.errors import CommitUnknownError
from job.spec import GlueService

TRIES: Final = 12
PROPERTIES: Final = {
    "format-version": "2",
    "write.parquet.compression-codec": "zstd",
    # Small loads leave many small manifests and many versions of the metadata.
    "commit.manifest-merge.enabled": "true",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "100",
}


class IcebergTable:
    """The table that an action names, in its catalog."""

    def __init__(
        self, action: IcebergAction, clients: aws.Clients, pause: Callable[[float], None] = time.sleep
    ) -> None:
        self.action = action
        self._clients = clients
        self._pause = pause
        self._written: list[str] = []
        self._catalog = open_catalog(action.service, clients, self._written)

    @property
    def name(self) -> str:
        """``namespace.table``, for people."""
        return f"{self.action.namespace}.{self.action.table}"

    @property
    def _identifier(self) -> tuple[str, str]:
        return self.action.namespace, self.action.table

    def load(self) -> Table | None:
        """The table as it is now; None when there is none."""
        with explained(self.action.service, self._clients, f"load table {self.name}"):
            try:
                return self._catalog.load_table(self._identifier)
            except (NoSuchTableError, NoSuchNamespaceError):
                return None

    def make(self, schema: pa.Schema) -> Table:
        """The table, made with these columns if there is none."""
        found = self.load()
        if found is not None:
            return found
        self._make_namespace()
        self._written.clear()
        location = self.action.location or None
        with explained(self.action.service, self._clients, f"create table {self.name}"):
            try:
                return self._catalog.create_table(self._identifier, schema, location, properties=PROPERTIES)
            except TableAlreadyExistsError:
                made = self._catalog.load_table(self._identifier)
        self._forget(list(self._written), made)
        return made

    def _make_namespace(self) -> None:
        properties = {}
        if isinstance(self.action.service, GlueService):
            properties = {"location": self.action.location.rpartition("/")[0]}
        with explained(self.action.service, self._clients, f"create namespace {self.action.namespace}"):
            try:
                self._catalog.load_namespace_properties(self.action.namespace)
            except NoSuchNamespaceError:
                try:
                    self._catalog.create_namespace(self.action.namespace, properties)
                except NamespaceAlreadyExistsError:
                    return

    def change(self, table: Table, done: Callable[[Table], bool], commit: Callable[[Table], Any]) -> Table:
        """The table once ``done`` holds of it: ``commit`` is tried on what was just read until it does.

        What the files of an attempt that lost are is known, and they are deleted; those of an attempt that got no
        clear answer wait until another commit has made it too late for that one.
        """
        unclear: list[list[str]] = []
        for number in range(TRIES):
            if done(table):
                break
            self._written.clear()
            lost = False
            try:
                with explained(self.action.service, self._clients, f"commit to {self.name}"):
                    commit(table)
            except LostRace:
                lost = True
            except UnclearCommit:
                unclear.append(list(self._written))
            table = self._reloaded()
            if lost:
                self._forget(list(self._written), table)
                self._pause(min(0.05 * 2**number, 2.0))
        if not done(table):
            raise CommitUnknownError(
                f"{self.name}: {TRIES} commits in a row came to nothing.", remedy="Run the same job id again."
            )
        for files in unclear:
            self._forget(files, table)
        return table

    def _reloaded(self) -> Table:
        table = self.load()
        if table is None:
            raise CommitUnknownError(
                f"{self.name} has gone from its catalog during the load.", remedy="Run the same job id again."
            )
        return table

    def _forget(self, written: Sequence[str], table: Table) -> None:
        """Delete what an attempt wrote, unless the table has it after all."""
        metadata = table.metadata
        known = {table.metadata_location, *(entry.metadata_file for entry in metadata.metadata_log)}
        known.update(snapshot.manifest_list for snapshot in metadata.snapshots)
        if known.isdisjoint(written):
            for location in written:
                table.io.delete(location)
